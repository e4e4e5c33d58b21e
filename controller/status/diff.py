"""The difference of two statuses as a merge patch, so that nothing stale is ever written back."""

from controller.model.wire import mapping
from hyperjob.api.meta import Object


def merge_patch(old: object, new: Object) -> Object:
    """Return what to merge into `old` to get `new`; empty when they say the same.

    Fields of `old` that `new` does not name are left alone at the top, taken away below.
    """
    current = mapping(old)
    return {
        key: _change(current.get(key), value)
        for key, value in new.items()
        if key not in current or current[key] != value
    }


def _change(old: object, new: object) -> object:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone: Object = {key: None for key in old if key not in new}
    return gone | merge_patch(old, new)
