"""Strategic merge patch, the patch type that kubectl uses for builtin kinds.

Never used for custom resources: the API server answers 415 there. Never changes its input.
"""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership.typed import merged_order
from hyperjob_sandbox.apiserver.schema.builtinlists import BUILTIN_LISTS

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
    match patch.get(_PATCH):
        case None | "merge":
            pass
        case "replace":
            original = {}
        case "delete":
            return {}
        case directive:
            raise errors.bad_request(f"unknown patch type: {directive} in map: {patch}")
    kept = patch.get(_RETAIN_KEYS)
    if kept is not None:
        if any(key not in kept for key in patch if not key.startswith("$")):
            why = f"{_RETAIN_KEYS} list doesn't contain all the keys of the patch"
            raise errors.bad_request(why)
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
    how = BUILTIN_LISTS.get((parent, key))
    replacing = [item for item in patch if isinstance(item, dict) and item.get(_PATCH) == "replace"]
    if how is None or replacing:
        fresh = [item for item in patch if item not in replacing]
        return [_merge(None, item, parent=parent, key=key) for item in fresh]

    merge_key = how.merge_key

    def name(item: Json) -> Json:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    merged = {name(item): item for item in original}
    for item in patch:
        if not merge_key:
            merged.setdefault(item, item)
        elif not isinstance(item, dict) or name(item) is None:
            why = f"map: {item} does not contain declared merge key: {merge_key}"
            raise errors.bad_request(why)
        elif item.get(_PATCH) == "delete":
            merged.pop(name(item), None)
        else:
            merged[name(item)] = _merge_map(merged.get(name(item), {}), item, parent=key)
    if isinstance(order, list):
        # The patch gives an order; items that it does not name keep their place.
        wanted = merged_order(list(merged), [name(item) for item in order])
        merged = {each: merged[each] for each in (*wanted, *merged) if each in merged}
    return list(merged.values())
