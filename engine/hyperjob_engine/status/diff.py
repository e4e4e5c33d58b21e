"""The difference of two statuses as a merge patch, which overwrites no unchanged field."""

import enum
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, objects

_TRAINING: Final = frozenset({"training", "goodput"})
_WORDY: Final = frozenset({"state", "jobs"})


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
    changed = {key for key, value in new.items() if old.get(key) != value}
    if not changed:
        return Weight.NOTHING
    if not changed <= _WORDY | _TRAINING:
        return Weight.FACTS
    if _differ(old, new, "message", "training"):
        return Weight.FACTS
    if new.get("stop") and _saved(old) != _saved(new):
        return Weight.FACTS  # the log of a pod that stops can be read once
    is_progress = changed & _TRAINING or _differ(old, new, "message")
    return Weight.PROGRESS if is_progress else Weight.WORDS


def _differ(old: Object, new: Object, *names: str) -> bool:
    """Return whether the states or the sub-jobs differ in more than the fields of these names."""
    if _without(old.get("state"), names) != _without(new.get("state"), names):
        return True
    before, after = objects(old.get("jobs")), objects(new.get("jobs"))
    return [_without(job, names) for job in before] != [_without(job, names) for job in after]


def _saved(status: Object) -> list[object]:
    """Return the steps that the sub-jobs have saved."""
    jobs = objects(status.get("jobs"))
    steps = (mapping(job.get("training")).get("savedStep") for job in jobs)
    return [mapping(status.get("checkpoint")).get("resumeStep"), *steps]


def _without(part: object, names: tuple[str, ...]) -> Object:
    return {key: value for key, value in mapping(part).items() if key not in names}


def _change(old: object, new: object) -> object:
    """Return the value of a field in a merge patch; of objects only what differs."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone: Object = {key: None for key in old if key not in new}
    return gone | merge_patch(old, new)
