"""Patches that need no schema: JSON patch (RFC 6902) and merge patch (RFC 7386).

Never changes its input: the patched object is a new value. What cannot be applied raises ApiError.
"""

import jsonpatch
import jsonpointer

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json

_OPERATIONS = frozenset({"add", "remove", "replace", "move", "copy", "test"})


def json_patch(obj: Json, ops: Json) -> Json:
    """Apply JSON patch operations; 400 for a bad patch, 422 where it does not apply."""
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        raise errors.bad_request(
            f"json: cannot unmarshal {jsonvalue.json_type(ops)} into Go value of type"
            " jsonpatch.Patch"
        )
    patched = jsonvalue.copy(obj)
    for op in ops:
        patched = _apply(patched, op)
    return patched


def _apply(document: Json, op: Object) -> Json:
    # jsonpatch compares with Python's ==, for which true equals 1: tests are done here.
    try:
        if op.get("op") == "test":
            return _test(document, op)
        if op.get("op") not in _OPERATIONS or "path" not in op:
            raise errors.rejected_patch()
        return jsonpatch.JsonPatch([jsonvalue.copy(op)]).apply(document, in_place=True)
    except (
        jsonpatch.JsonPatchException,
        jsonpointer.JsonPointerException,
        TypeError,
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
    ) as error:
        raise errors.rejected_patch() from error


def _test(document: Json, op: Object) -> Json:
    wanted = op.get("value")
    missing = object()
    found = jsonpointer.JsonPointer(op["path"]).resolve(document, missing)
    if found is missing and wanted is None:
        return document
    if found is missing or not _equal_numbers(found, wanted):
        raise errors.rejected_patch()
    return document


def _equal_numbers(a: Json, b: Json) -> bool:
    """Compare JSON values: 5 and 5.0 are one number, true is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal_numbers(item, b[key]) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal_numbers, a, b))
    return bool(a == b)


def merge_patch(obj: Json, patch: Json) -> Json:
    """Apply a merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        raise errors.bad_request("Invalid JSON Patch")
    return _merge(obj, patch)


def _merge(target: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return jsonvalue.copy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return {key: value if key in patch else jsonvalue.copy(value) for key, value in merged.items()}
