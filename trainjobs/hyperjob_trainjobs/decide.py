"""One pass of a TrainJob: what becomes of its HyperJob, its status, and when to look again."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hyperjob_core.api.duration import later
from hyperjob_core.api.field import aggregate
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import is_controlled
from hyperjob_core.api.trainer import (
    COMPLETE,
    FAILED,
    RUNS_AS,
    RUNS_AS_HYPERJOB,
    SUSPENDED,
    TRAINER_CONTROLLER,
    TTL,
)
from hyperjob_core.api.wire import (
    at,
    condition,
    integer,
    mapping,
    natural,
    string,
    string_map,
    timestamp,
)
from hyperjob_engine.model.planned import Event
from hyperjob_engine.status.diff import merge_patch
from hyperjob_trainjobs.convert import convert
from hyperjob_trainjobs.refusals import Refusals
from hyperjob_trainjobs.status import (
    DEADLINE,
    NOT_SUPPORTED,
    Verdict,
    is_finished,
    outcome,
    started,
    status_of,
    suspension,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The objects of a pass of a TrainJob; None: absent. `hyperjob` may be of another owner."""

    trainjob: Object
    runtime: Object | None
    namespace: Object | None
    hyperjob: Object | None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a pass of a TrainJob does, in this order: HyperJob, status, Events."""

    create: Object | None = None
    suspend: bool | None = None
    """The value to write to `spec.suspend` of the HyperJob; None: it is right."""
    delete: bool = False
    status: Object | None = None
    """Merge patch of the status; None: it is right."""
    events: tuple[Event, ...] = ()
    again: timedelta | None = None
    """Time until the next pass; None: the next change of an object causes it."""


NOTHING = Decided()


def runs_as_hyperjob(trainjob: Object, runtime: Object | None, namespace: Object | None) -> bool:
    """Return whether labels make a TrainJob a HyperJob; the nearest label decides.

    A TrainJob that MultiKueue manages is left alone.
    """
    if at(trainjob, "spec", "managedBy") not in (None, "", TRAINER_CONTROLLER):
        return False
    for obj in (trainjob, runtime, namespace):
        value = string_map(at(obj, "metadata", "labels")).get(RUNS_AS)
        if value is not None:
            return value == RUNS_AS_HYPERJOB
    return False


def decide(seen: Seen) -> Decided:
    """Return what a pass of a TrainJob does."""
    trainjob = seen.trainjob
    if at(trainjob, "metadata", "deletionTimestamp") is not None:
        return NOTHING
    owned = _is_owned(seen)
    if not owned and not runs_as_hyperjob(trainjob, seen.runtime, seen.namespace):
        return NOTHING
    if is_finished(trainjob):
        return _after_end(seen) if owned else NOTHING
    if owned:
        return _follow(seen, mapping(seen.hyperjob))
    return _begin(seen)


def _is_owned(seen: Seen) -> bool:
    """Return whether the HyperJob is of this TrainJob, not of an earlier one of its name."""
    uid = string(at(seen.trainjob, "metadata", "uid"))
    return seen.hyperjob is not None and is_controlled(seen.hyperjob, uid)


def _begin(seen: Seen) -> Decided:
    """Create the HyperJob, or say why there is none."""
    trainjob = seen.trainjob
    if seen.hyperjob is not None:
        # After the deletion of a TrainJob its HyperJob remains for a moment.
        name = string(at(trainjob, "metadata", "name"))
        return _warned(
            "HyperJobExists",
            f"waits: HyperJob {name} exists and does not belong to this TrainJob; delete it, or"
            " give the TrainJob another name",
        )
    if seen.runtime is None:
        runtime = Refusals(trainjob).runtime
        return _warned(
            "RuntimeNotFound", f"waits: spec.runtimeRef names {runtime}, which is missing"
        )
    found = convert(trainjob, seen.runtime)
    if found.hyperjob is None:
        refused = Verdict(FAILED, True, NOT_SUPPORTED, aggregate(found.refusals))
        return _written(seen, refused)
    created = Event(
        type="Normal",
        reason="HyperJobCreated",
        action="Create",
        note="created the HyperJob of the same name",
    )
    decided = _written(seen)
    return replace(decided, create=found.hyperjob, events=(created, *decided.events))


def _follow(seen: Seen, hyperjob: Object) -> Decided:
    """Carry suspend over to the HyperJob, and its status back to the TrainJob."""
    trainjob = seen.trainjob
    ended, left = outcome(hyperjob), _time_left(seen)
    if ended is not None:
        decided = _written(seen, ended)
        return replace(decided, again=_until_deletion(hyperjob, timedelta()))
    if left is not None and left <= timedelta():
        message = "TrainJob exceeded its active deadline"
        return replace(
            _written(seen, Verdict(FAILED, True, DEADLINE, message)), again=timedelta(seconds=1)
        )
    wanted = at(trainjob, "spec", "suspend") is True
    actual = at(hyperjob, "spec", "suspend") is True
    decided = _written(seen)
    return replace(decided, suspend=wanted if wanted != actual else None, again=left)


def _after_end(seen: Seen) -> Decided:
    """Delete the HyperJob after a missed deadline, or after the time to live of its JobSet."""
    failed = condition(mapping(seen.trainjob.get("status")), FAILED)
    if failed.get("status") == "True" and failed.get("reason") == DEADLINE:
        return Decided(delete=True)
    complete = condition(mapping(seen.trainjob.get("status")), COMPLETE)
    ended = timestamp((complete or failed).get("lastTransitionTime"))
    left = _until_deletion(mapping(seen.hyperjob), seen.now - ended if ended else timedelta())
    if left is None:
        return NOTHING
    return Decided(delete=True) if left <= timedelta() else Decided(again=left)


def _until_deletion(hyperjob: Object, passed: timedelta) -> timedelta | None:
    """Return the time until the deletion of a HyperJob whose TrainJob ended `passed` ago.

    None for a HyperJob that stays: its runtime has no ttlSecondsAfterFinished.
    """
    seconds = natural(string_map(at(hyperjob, "metadata", "annotations")).get(TTL, ""))
    return None if seconds is None else timedelta(seconds=min(seconds, 2**31)) - passed


def _time_left(seen: Seen) -> timedelta | None:
    """Return the time until the TrainJob's deadline; None without one, or while suspended."""
    seconds = integer(at(seen.trainjob, "spec", "activeDeadlineSeconds"))
    begin = started(seen.trainjob)
    suspended = at(seen.trainjob, "spec", "suspend") is True
    if not seconds or begin is None or suspended:
        return None
    was = condition(mapping(seen.trainjob.get("status")), SUSPENDED)
    if was.get("status") == "True":
        return timedelta(seconds=min(seconds, 2**31))  # this pass records the resume
    return later(begin, timedelta(seconds=min(seconds, 2**31))) - seen.now


def _warned(reason: str, note: str) -> Decided:
    """Return an Event without another change: the TrainJob waits for the change of an object."""
    event = Event(type="Warning", reason=reason, action="Reconcile", note=note)
    return Decided(events=(event,))


def _written(seen: Seen, *more: Verdict) -> Decided:
    """Return the write of the status, with an Event for each condition that it changes."""
    trainjob = seen.trainjob
    paused = suspension(trainjob)
    verdicts = {each.type: each for each in (paused, *more) if each is not None}
    hyperjob = seen.hyperjob if _is_owned(seen) else None
    status = status_of(trainjob, hyperjob, verdicts, now=seen.now)
    old = mapping(trainjob.get("status"))
    changed = [
        each
        for kind, each in verdicts.items()
        if condition(old, kind).get("status") != ("True" if each.true else "False")
    ]
    events = tuple(
        Event(
            type="Warning" if each.type == FAILED else "Normal",
            reason=each.reason,
            action="Reconcile",
            note=each.message,
        )
        for each in changed
    )
    return Decided(status=merge_patch(old, status) or None, events=events)
