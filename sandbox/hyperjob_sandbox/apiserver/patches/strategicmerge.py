"""Strategic merge patch, the patch type that kubectl uses for builtin kinds.

Never used for custom resources: the API server answers 415 there. Never changes its input.
"""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.builtinlists import BUILTIN_LISTS, BuiltinList

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_SET_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_merge_patch(obj: Object, patch: Object) -> Object:
    """Merge a patch into an object of a builtin kind; raise ApiError 400 for bad directives."""
    return _merge_map(jsonvalue.copy(obj), patch, parent="")


def _merge_map(original: Object, patch: Object, *, parent: str) -> Object:
    directive = patch.get(_PATCH)
    if directive == "replace":
        replaced: Object = _clean(patch)
        return replaced
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise errors.bad_request(f"unknown patch type: {directive} in map: {patch}")
    if _RETAIN_KEYS in patch:
        _retain(original, patch)
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            field = key.removeprefix(_DELETE_PRIMITIVES)
            if field in original:
                original[field] = [item for item in original[field] if item not in value]
    for key, value in patch.items():
        if key in (_PATCH, _RETAIN_KEYS) or key.startswith((_SET_ORDER, _DELETE_PRIMITIVES)):
            continue
        if value is None:
            original.pop(key, None)
        elif key not in original or original[key] is None:
            original[key] = _fresh(value, BUILTIN_LISTS.get((parent, key)))
        elif isinstance(value, dict) and isinstance(original[key], dict):
            original[key] = _merge_map(original[key], value, parent=key)
        elif isinstance(value, list) and isinstance(original[key], list):
            original[key] = _merge_list(
                original[key],
                value,
                field=key,
                how=BUILTIN_LISTS.get((parent, key)),
                order=patch.get(_SET_ORDER + key),
            )
        else:
            original[key] = _clean(value)
    return original


def _retain(original: Object, patch: Object) -> None:
    kept = set(patch[_RETAIN_KEYS])
    unknown = [key for key in patch if not key.startswith("$") and key not in kept]
    if unknown:
        raise errors.bad_request(f"{_RETAIN_KEYS} list doesn't contain all the keys of the patch")
    for key in [key for key in original if key not in kept]:
        del original[key]


def _merge_list(
    original: list[Json], patch: list[Json], *, field: str, how: BuiltinList | None, order: Json
) -> list[Json]:
    if how is None:
        return [_clean(item) for item in patch]
    server_order = list(original)
    if not how.merge_key:
        merged = original + [item for item in patch if item not in original]
        return _ordered(merged, order, server_order, key="")
    replacing = [item for item in patch if isinstance(item, dict) and item.get(_PATCH) == "replace"]
    if replacing:
        return [_clean(item) for item in patch if item not in replacing]
    merged = list(original)
    for item in patch:
        at = _find(merged, _key(item, how.merge_key), how.merge_key)
        if item.get(_PATCH) == "delete":
            if at is not None:
                del merged[at]
        elif at is None:
            merged.append(_clean(item))
        else:
            merged[at] = _merge_map(merged[at], item, parent=field)
    return _ordered(merged, order, server_order, key=how.merge_key)


def _key(item: Json, merge_key: str) -> Json:
    if not isinstance(item, dict) or item.get(merge_key) is None:
        raise errors.bad_request(f"map: {item} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _find(items: list[Json], value: Json, merge_key: str) -> int | None:
    return next(
        (
            i
            for i, item in enumerate(items)
            if isinstance(item, dict) and item.get(merge_key) == value
        ),
        None,
    )


def _ordered(merged: list[Json], order: Json, server_order: list[Json], *, key: str) -> list[Json]:
    """Sort by the order that the patch gives; items it does not name keep their place."""
    if not isinstance(order, list):
        return merged

    def name(item: Json) -> Json:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [name(item) for item in order]
    known = [name(item) for item in server_order]
    ours = sorted((i for i in merged if name(i) in wanted), key=lambda i: wanted.index(name(i)))
    others = [item for item in merged if name(item) not in wanted]
    result: list[Json] = []
    while ours and others:
        left, right = name(others[0]), name(ours[0])
        first = left in known and right in known and known.index(left) < known.index(right)
        result.append((others if first else ours).pop(0))
    return result + ours + others


def _fresh(value: Json, how: BuiltinList | None) -> Json:
    """Return what a patch value means where the object has nothing yet."""
    if isinstance(value, list) and how is not None:
        return [
            _clean(item)
            for item in value
            if not (isinstance(item, dict) and item.get(_PATCH) in ("delete", "replace"))
        ]
    if isinstance(value, dict) and value.get(_PATCH) == "delete":
        return {}
    return _clean(value)


def _clean(value: Json) -> Json:
    """Copy a patch value without nulls and directives: nothing is there to remove."""
    if isinstance(value, dict):
        return {
            key: _clean(item)
            for key, item in value.items()
            if item is not None and not key.startswith("$")
        }
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
