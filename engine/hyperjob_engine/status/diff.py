"""The difference of two statuses as a merge patch, which overwrites no unchanged field."""

import enum
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import at, count, mapping, objects
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.jobs import PLACED, QUEUED, pods_text

_TRAINING: Final = frozenset({"training", "goodput"})
_WORDY: Final = frozenset({"state", "jobs"})
_COUNTS: Final = frozenset({"clusters", "jobsReady", "replicatedJobsStatus", "runningPods"})
_STEP_PHASES: Final = frozenset({QUEUED, PLACED, JobPhase.PENDING, JobPhase.RUNNING})
_STEP_REASONS: Final = frozenset(
    {
        None,
        "",
        Reason.WAITING_FOR_QUEUE,
        Reason.WAITING_FOR_GANG,
        Reason.DISPATCHING,
    }
)
_OF_STEP: Final = (
    "phase",
    "reason",
    "message",
    "admitted",
    "running",
    "startTime",
    "lastTransitionTime",
)


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
    STEPS = 3  # sub-jobs of a HyperJob that still starts took steps without trouble
    FACTS = 4


def weigh(old: Object, new: Object) -> Weight:
    """Return how much two statuses differ."""
    changed = {key for key, value in new.items() if old.get(key) != value}
    if not changed:
        return Weight.NOTHING
    if _are_steps(old, new, changed):
        return Weight.STEPS
    if not changed <= _WORDY | _TRAINING or _differ(old, new, "message", "training"):
        return Weight.FACTS
    if new.get("stop") and _saved(old) != _saved(new):
        return Weight.FACTS  # the log of a pod that stops can be read once
    slow = ("training", "straggler")
    if any(at(old, *slow, key) != at(new, *slow, key) for key in ("pod", "rank")):
        return Weight.FACTS
    is_progress = changed & _TRAINING or _differ(old, new, "message")
    return Weight.PROGRESS if is_progress else Weight.WORDS


def _are_steps(old: Object, new: Object, changed: set[str]) -> bool:
    """Return whether Karmada and Volcano only brought the sub-jobs nearer to their start.

    The HyperJob keeps its phase, and each sub-job that has changed its cluster and its attempt. The
    record of an incomplete gang follows from the vcjobs until the controller deletes them, and the
    conditions follow from the state.
    """
    if any(at(status, "state", "phase") != Phase.STARTING for status in (old, new)):
        return False
    if new.get("stop"):
        return False  # the log of a pod that stops can be read once
    if not changed <= _WORDY | _COUNTS | {"gang", "conditions"} or _retry(old) != _retry(new):
        return False
    before, after = objects(old.get("jobs")), objects(new.get("jobs"))
    if at(new, "state", "reason") not in _STEP_REASONS | {Reason.PODS_PENDING}:
        return False
    if not all(map(_is_step, (*_changed(before, after), *_changed(after, before)))):
        return False
    return [_without(job, _OF_STEP) for job in before] == [_without(job, _OF_STEP) for job in after]


def _is_step(job: Object) -> bool:
    """Return whether a sub-job is on its way, and nothing is known that keeps it from running."""
    if job.get("reason") == Reason.PODS_PENDING:
        return job.get("message") == pods_text(count(job.get("running")), count(job.get("pods")))
    return job.get("phase") in _STEP_PHASES and job.get("reason") in _STEP_REASONS


def _changed(jobs: list[Object], others: list[Object]) -> list[Object]:
    """Return the `jobs` of which `others` has no equal at the same place."""
    return [job for job, other in zip(jobs, others, strict=False) if job != other]


def _retry(status: Object) -> tuple[object, object]:
    """Return how often the controller deleted an incomplete gang, and the time of its next try."""
    gang = mapping(status.get("gang"))
    return gang.get("attempts") or 0, gang.get("retryTime")


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
