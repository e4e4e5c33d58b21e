"""The Events of a HyperJob, from the difference of two statuses and from successful actions.

A pass without a change emits no Event.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import taken
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import ContainerFailure, Run
from hyperjob_core.api.wire import at, mapping, objects, string
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
from hyperjob_engine.status.phase import STARTED, TRAINS

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
