"""The patches: JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch.

kubectl sends the last for builtin kinds; for custom resources the API server answers 415 to it.
None changes its input: the patched object is a new value. What cannot be applied raises ApiError.
"""

import jsonpatch
import jsonpointer

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.patches import merged
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership.typed import merged_order
from hyperjob_sandbox.apiserver.schema.typeinfo import BUILTIN_LISTS


def json_patch(obj: Json, ops: Json) -> Json:
    """Apply JSON patch operations; 400 for a bad patch, 422 where it does not apply."""
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        raise errors.bad_request(
            f"json: cannot unmarshal {jsonvalue.json_type(ops)} into Go value of type"
            " jsonpatch.Patch"
        )
    try:
        return jsonpatch.JsonPatch(jsonvalue.copy(ops)).apply(obj)
    except (
        *(jsonpatch.JsonPatchException, jsonpointer.JsonPointerException),
        *(TypeError, ValueError, KeyError, IndexError, AttributeError),
    ) as error:
        raise errors.rejected_patch() from error


def merge_patch(obj: Json, patch: Json) -> Json:
    """Apply a merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        raise errors.bad_request("Invalid JSON Patch")
    return jsonvalue.copy(merged(obj, patch))


_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_SET_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_merge_patch(obj: Object, patch: Object) -> Object:
    """Merge a patch into an object of a builtin kind; raise ApiError 400 for bad directives."""
    return _merge_map(jsonvalue.copy(obj), patch, parent="")


def _merge(original: Json, value: Json, *, parent: str, key: str, order: Json = None) -> Json:
    """Merge a value of a patch; what is new is merged into nothing, which drops its directives."""
    if isinstance(value, dict):
        return _merge_map(original if isinstance(original, dict) else {}, value, parent=key)
    if isinstance(value, list):
        items = original if isinstance(original, list) else []
        return _merge_list(items, value, parent=parent, key=key, order=order)
    return value


def _merge_map(original: Object, patch: Object, *, parent: str) -> Object:
    if directive := patch.get(_PATCH):
        raise errors.bad_request(f"unknown patch type: {directive} in map: {patch}")
    if (kept := patch.get(_RETAIN_KEYS)) is not None:
        original = {key: value for key, value in original.items() if key in kept}
    for key, value in patch.items():
        field = key.removeprefix(_DELETE_PRIMITIVES)
        if field != key and field in original:
            original[field] = [item for item in original[field] if item not in value]
    for key, value in patch.items():
        if value is None:
            original.pop(key, None)
        elif not key.startswith("$"):
            order = patch.get(_SET_ORDER + key)
            original[key] = _merge(original.get(key), value, parent=parent, key=key, order=order)
    return original


def _merge_list(
    original: list[Json], patch: list[Json], *, parent: str, key: str, order: Json
) -> list[Json]:
    how = BUILTIN_LISTS.get(f"{parent}.{key}")
    if how is None:
        return [_merge(None, item, parent=parent, key=key) for item in patch]
    merge_key = how.get("merge", "")

    def name(item: Json) -> Json:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    by_name = {name(item): item for item in original}
    for item in patch:
        if not merge_key:
            by_name.setdefault(item, item)
        elif not isinstance(item, dict) or name(item) is None:
            why = f"map: {item} does not contain declared merge key: {merge_key}"
            raise errors.bad_request(why)
        elif item.get(_PATCH) == "delete":
            by_name.pop(name(item), None)
        else:
            by_name[name(item)] = _merge_map(by_name.get(name(item), {}), item, parent=key)
    if isinstance(order, list):
        # The patch gives an order; items that it does not name keep their place.
        wanted = merged_order(list(by_name), [name(item) for item in order])
        by_name = {each: by_name[each] for each in (*wanted, *by_name) if each in by_name}
    return list(by_name.values())
