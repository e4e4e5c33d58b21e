"""The difference of two statuses as a merge patch, so that nothing stale is ever written back."""

from controller.model.wire import mapping, objects
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


def differs_in_words_only(old: Object, new: Object) -> bool:
    """Tell whether two statuses differ in nothing but messages."""
    return not merge_patch(_wordless(old), _wordless(new))


def _wordless(status: Object) -> Object:
    bare = {key: value for key, value in status.items() if key not in ("state", "jobs")}
    bare["state"] = _without_message(status.get("state"))
    bare["jobs"] = [_without_message(job) for job in objects(status.get("jobs"))]
    return bare


def _without_message(part: object) -> Object:
    return {key: value for key, value in mapping(part).items() if key != "message"}


def _change(old: object, new: object) -> object:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone: Object = {key: None for key in old if key not in new}
    return gone | merge_patch(old, new)
