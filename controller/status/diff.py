"""The difference of two statuses as a merge patch, so that nothing stale is ever written back.

A field that is null and one that is absent are the same, as they are to a merge patch.
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
    patch: Object = {key: None for key in old if key not in new}
    for key, value in new.items():
        if not _same(old.get(key), value):
            patch[key] = _change(old.get(key), value)
    return patch


def _same(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same(left.get(key), right.get(key)) for key in {*left, *right})
    return left == right
