"""The difference of two statuses as a merge patch, so that nothing stale is ever written back.

Empty, zero and absent are the same to an API that omits them or fills in defaults.
"""

from controller.model.wire import mapping
from hyperjob.api.meta import Object


def merge_patch(old: object, new: Object) -> Object:
    """Return what to merge into `old` to get `new`; empty when they say the same.

    Fields of `old` that `new` does not name are left alone at the top, taken away below.
    """
    current = mapping(old)
    patch: Object = {}
    for key, value in new.items():
        if not _same(current.get(key), value):
            patch[key] = _change(current.get(key), value)
    return patch


def _change(old: object, new: object) -> object:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: Object = {key: None for key in old if key not in new and not _empty(old[key])}
    for key, value in new.items():
        if not _same(old.get(key), value):
            patch[key] = _change(old.get(key), value)
    return patch


def _same(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        keys = {*left, *right}
        return all(_same(left.get(key), right.get(key)) for key in keys)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right or (_empty(left) and _empty(right))


def _empty(value: object) -> bool:
    return value is None or (value in ("", 0, [], {}) and value is not False)
