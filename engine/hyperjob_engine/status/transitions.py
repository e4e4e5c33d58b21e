"""The difference of two statuses: a merge patch, its weight, and the Events of a HyperJob.

A merge patch overwrites no unchanged field. Events come from successful actions too. A pass without
a change emits no Event.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import taken
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.status import ContainerFailure, Run
from hyperjob_core.api.wire import at, count, mapping, objects, string
from hyperjob_core.text import listed
from hyperjob_engine.lifecycle.decisions import RefusedRequest, Restart
from hyperjob_engine.model.planned import (
    Action,
    Adopt,
    AskAgain,
    CreateChild,
    DeleteChild,
    DeleteHyperJob,
    DeleteWork,
    DeletionCause,
    Event,
    KeepClaim,
    Look,
    OpenGate,
    ReleaseQuota,
    ReleaseScheduling,
    Repin,
    Resize,
)
from hyperjob_engine.reasons.pods import container_text
from hyperjob_engine.reasons.reason import Reason, has_lost, stop_text
from hyperjob_engine.status.jobs import PLACED, QUEUED, pods_text
from hyperjob_engine.status.phase import STARTED, TRAINS

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


_NAMES_SHOWN: Final = 5
_WHYS: Final = {
    DeletionCause.WOULD_TAKE_JOB: "which would place the Job of another owner",
    DeletionCause.NOTHING_REPORTED: "whose cluster reports nothing about it",
    DeletionCause.NO_PODS: "whose cluster reports none of its pods",
    DeletionCause.NO_PROGRESS: "whose cluster reports no progress",
    DeletionCause.GANG_INCOMPLETE: "because the gang stayed incomplete",
    DeletionCause.OTHER_CLUSTERS: (
        "to recreate it for the clusters in which the other sub-jobs run now"
    ),
}
STARTS: Final = frozenset({"Created", "GateOpened"})
"""The reasons of Events about actions which lead to a phase, whose Event has their notes."""
_WARNING_PHASES: Final = frozenset({Phase.DEGRADED, Phase.FAILED})
_TROUBLES: Final = frozenset(
    {
        Reason.NAME_CONFLICT,
        Reason.REFUSED,
        Reason.FAILED_CREATE,
        Reason.APPLY_FAILED,
        Reason.NOTHING_REPORTED,
        Reason.REFUSED_BY_CLUSTER,
        Reason.INVALID_SPEC,
        Reason.INTERNAL_ERROR,
        Reason.GANG_BACK_OFF,
        Reason.NO_PROGRESS,
        Reason.SLOW_PROGRESS,
        Reason.PODS_BLOCKED,
        Reason.TASKS_FAILED,
        Reason.CRASH_LOOP,
    }
)


_GOES_ON: Final = TRAINS | {Phase.RESTARTING}


def status_events(old: Object, new: Object) -> tuple[Event, ...]:
    """Return the Events of a change of status.

    The HyperJob has at most one, and a sub-job none about the reason that this Event has. Equal
    statuses have no Events.
    """
    events = []
    phase, reason = string(at(new, "state", "phase")), string(at(new, "state", "reason"))
    was = string(at(old, "state", "phase")), string(at(old, "state", "reason"))
    if phase != was[0] or (reason in _TROUBLES and reason != was[1]):
        note = "; ".join([string(at(new, "state", "message")) or phase, *_choices(new, was[0])])
        lacks = phase in _WARNING_PHASES and reason != Reason.RESIZED  # it lost no sub-job
        troubled = reason in _TROUBLES or lacks
        what = reason if reason in _TROUBLES else phase
        events.append(_event(what, "Reconcile", note, warns=troubled))
    events += [*_stops(old, new), *_resized(old, new)]
    untold = _TROUBLES - {event.reason for event in events}
    before = {item.get("name"): item for item in objects(old.get("jobs"))}
    for job in objects(new.get("jobs")):
        earlier = before.get(job.get("name"), {})
        events += _rejections(job, earlier)
        events += _failure(job, earlier)
        trouble = string(job.get("reason"))
        if trouble in untold and trouble != earlier.get("reason"):
            note = f"{string(job.get('name'))}: {string(job.get('message'))}"
            events.append(_event(trouble, "Reconcile", note, warns=True))
    return tuple(events[: _NAMES_SHOWN + 1])


def _choices(new: Object, was: str) -> Iterator[str]:
    """Yield the alternative or size of each replicated job with which the sub-jobs start now."""
    if string(at(new, "state", "phase")) in STARTED and was not in STARTED:
        for group, each in taken(new).items():
            yield f"{group} takes {each.name}: {each.message}"


def _resized(old: Object, new: Object) -> Iterator[Event]:
    """Yield an Event about each size that a HyperJob has changed without waiting."""
    before = taken(old)
    if {string(at(each, "state", "phase")) for each in (old, new)} <= _GOES_ON:
        for group, each in taken(new).items():
            was = before.get(group, each).name
            if was != each.name:
                note = f"{group} goes from {was} to {each.name}: {each.message}"
                yield _event("Resized", "Resize", note)


def _failure(job: Object, earlier: Object) -> Iterator[Event]:
    """Yield the Event about the first failed container of a sub-job, which the status now has."""
    failure, cluster = table.read(ContainerFailure, job.get("failure")), string(job.get("cluster"))
    runs = table.read_all(Run, job.get("history"))
    if runs and runs[-1:] != table.read_all(Run, earlier.get("history"))[-1:]:
        failure, cluster = runs[-1].failure, runs[-1].cluster  # recorded with the restart
    if failure is not None and failure != table.read(ContainerFailure, earlier.get("failure")):
        where = f" on {cluster}" if cluster else ""
        note = f"{string(job.get('name'))} failed{where}: {container_text(failure)}"
        yield _event(Reason.JOB_FAILED, "Reconcile", note, warns=True)


def _stops(old: Object, new: Object) -> Iterator[Event]:
    """Yield the Event of the end of a planned stop; its note has the steps that were not saved."""
    if not mapping(old.get("stop")) or mapping(new.get("stop")):
        return
    lost, saved = has_lost(new), stop_text(new)
    note = f"All sub-jobs that were stopped have ended{f': {saved}' if saved else ''}"
    yield _event("NotSaved" if lost else "Stopped", "Stop", note, warns=lost)


def _rejections(job: Object, earlier: Object) -> Iterator[Event]:
    """Yield an Event for each cluster on which the controller stops placing the sub-job."""
    known = {item.get("cluster"): item.get("times") for item in objects(earlier.get("rejections"))}
    for item in objects(job.get("rejections")):
        cluster, times = string(item.get("cluster")), item.get("times")
        if times and times != known.get(cluster):
            note = (
                f"Karmada could not schedule {string(job.get('name'))} on {cluster}: left out until"
                f" {string(item.get('retryTime'))}"
            )
            yield _event("Unschedulable", "Place", note, warns=True)


def restart_events(decided: Restart, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return the Events with one about recreated sub-jobs, unless it has one of the phase."""
    if not decided.again or any(event.reason == Phase.RESTARTING for event in events):
        return events
    note = f"Recreates {_listed(again.name for again in decided.again)}: {decided.again[0].why}"
    return (*events, _event(Phase.RESTARTING, "Restart", note, warns=bool(decided.spent)))


def pass_events(decided: Sequence[Event], done: Sequence[Event]) -> tuple[Event, ...]:
    """Return the Events of a pass: those of its status, then those of its successful actions.

    A start has the same cause as the phase that it leads to: the Event of this phase has both
    notes, and each sub-job costs fewer requests. An Event about trouble stays by itself.
    """
    if not decided or decided[0].type != "Normal" or decided[0].reason not in set(Phase):
        return (*decided, *done)
    starts = [event for event in done if event.reason in STARTS]
    note = "; ".join(event.note for event in (*starts, decided[0]))
    others = (event for event in done if event.reason not in STARTS)
    return (replace(decided[0], note=note), *decided[1:], *others)


def action_events(done: Iterable[Action]) -> tuple[Event, ...]:
    """Return the Events of successful actions: one for all actions of a kind."""
    by_kind: dict[type[Action], list[Action]] = {}
    for action in done:
        by_kind.setdefault(type(action), []).append(action)
    events = [event for event in map(_event_of, by_kind.values()) if event is not None]
    for action in by_kind.get(CreateChild, [])[:_NAMES_SHOWN]:
        if isinstance(action, CreateChild) and action.overflow:
            note = f"{action.name} is on {action.cluster}: {action.overflow}"
            events.append(_event("Overflowed", "Place", note))
    return tuple(events)


def _event_of(actions: Sequence[Action]) -> Event | None:
    """Return the Event of actions of one kind, at least one; None for kinds without an Event."""
    names = _listed(action.name for action in actions)
    match actions[0]:
        case Look() | ReleaseQuota() | KeepClaim():
            return None
        case CreateChild():
            clusters = sorted({item.cluster for item in actions if isinstance(item, CreateChild)})
            return _event("Created", "Create", f"Created {names} on {', '.join(clusters)}")
        case Adopt():
            return _event("Adopted", "Adopt", f"Adopted {names}")
        case Resize():
            return _event("Resized", "Resize", f"Changed the size of {names}")
        case AskAgain():
            return _event("AskedAgain", "Dispatch", f"Asked Karmada to apply {names} again")
        case DeleteWork():
            places = sorted({each for item in actions for each in getattr(item, "clusters", ())})
            where = f"{names} on {', '.join(places)}, which Karmada had forgotten"
            return _event("WorkDeleted", "Delete", f"Deleted the Work of {where}", warns=True)
        case OpenGate():
            together = " together" if len(actions) > 1 else ""
            return _event("GateOpened", "Dispatch", f"Let {names} be dispatched{together}")
        case ReleaseScheduling():
            left_out = "which Volcano Global's dispatcher left out: restart the dispatcher"
            return _event("Released", "Dispatch", f"Released {names}, {left_out}", warns=True)
        case Repin():
            return _event("Moved", "Move", f"Moved {names} to another cluster")
        case DeleteChild():
            causes = {item.why for item in actions if isinstance(item, DeleteChild)}
            whys = sorted(_WHYS[cause] for cause in causes if cause is not None)
            because = f", {' or '.join(whys)}" if whys else ""
            return _event("Deleted", "Delete", f"Deleted {names}{because}")
        case DeleteHyperJob():
            note = f"Deleted {names}: ttlSecondsAfterFinished has passed"
            return _event("Expired", "Delete", note)
        case _:
            assert_never(actions[0])


def _event(reason: str, action: str, note: str, *, warns: bool = False) -> Event:
    return Event(type="Warning" if warns else "Normal", reason=reason, action=action, note=note)


def _listed(names: Iterable[str]) -> str:
    return listed(list(dict.fromkeys(names)), shown=_NAMES_SHOWN)


def refusal_events(refused: Iterable[RefusedRequest]) -> tuple[Event, ...]:
    """Return the Events of refused requests."""
    return tuple(
        _event("RequestRefused", "Restart", f"{kind} {token}: {why}", warns=True)
        for kind, token, why in refused
    )
