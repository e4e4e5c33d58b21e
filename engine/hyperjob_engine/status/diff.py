"""The difference of two statuses as a merge patch, which overwrites no unchanged field."""

import enum
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, objects

_TRAINING: Final = frozenset({"training", "goodput"})


def merge_patch(old: object, new: Object) -> Object:
    """Return the JSON merge patch that turns `old` into `new`; empty if they are equal.

    A top-level field of `old` that `new` lacks stays; below the top level the patch removes it.
    None in `new` removes a field of `old`.
    """
    current = mapping(old)
    return {
        key: _change(current.get(key), value)
        for key, value in new.items()
        if current.get(key) != value
    }


class Weight(enum.IntEnum):
    """How important a change of the status is."""

    NOTHING = 0
    WORDS = 1  # messages alone
    PROGRESS = 2  # how far the training is, and messages
    FACTS = 3


def weigh(old: Object, new: Object) -> Weight:
    """Return how much two statuses differ."""
    if not merge_patch(old, new):
        return Weight.NOTHING
    before, after = _wordless(old), _wordless(new)
    if not merge_patch(before, after):
        return Weight.WORDS
    differs = merge_patch(_without_training(before), _without_training(after))
    return Weight.FACTS if differs else Weight.PROGRESS


def _wordless(status: Object) -> Object:
    bare = {key: value for key, value in status.items() if key not in ("state", "jobs")}
    bare["state"] = _without(status.get("state"), "message")
    bare["jobs"] = [_without(job, "message") for job in objects(status.get("jobs"))]
    return bare


def _without_training(status: Object) -> Object:
    bare = {key: value for key, value in status.items() if key not in _TRAINING}
    bare["jobs"] = [_without(job, "training") for job in objects(status.get("jobs"))]
    return bare


def _without(part: object, name: str) -> Object:
    return {key: value for key, value in mapping(part).items() if key != name}


def _change(old: object, new: object) -> object:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone: Object = {key: None for key in old if key not in new}
    return gone | merge_patch(old, new)
