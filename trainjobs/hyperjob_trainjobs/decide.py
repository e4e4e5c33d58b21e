"""One pass of a TrainJob: what becomes of its HyperJob, its status, and when to look again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.duration import later
from hyperjob_core.api.field import (
    METADATA,
    SPEC,
    FieldError,
    aggregate,
    forbidden,
    invalid,
    not_found,
)
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONDITION_COMPLETED, CONDITION_FAILED
from hyperjob_core.api.ownership import is_controlled
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.trainer import (
    COMPLETE,
    FAILED,
    REPLICATED_JOB_NAME,
    RUNS_AS,
    RUNS_AS_HYPERJOB,
    SPREAD,
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
    objects,
    rfc3339,
    string,
    string_map,
    timestamp,
)
from hyperjob_engine.model.planned import Event
from hyperjob_engine.status.transitions import merge_patch
from hyperjob_rules.validation.context import Context
from hyperjob_rules.validation.create import validate_create
from hyperjob_rules.validation.rules import ALLOWED, Decision
from hyperjob_trainjobs.checks import RUNTIME_REF, Refusals
from hyperjob_trainjobs.convert import convert

NOT_SUPPORTED: Final = "TrainingRuntimeNotSupported"
"""Reason of the condition Failed of a TrainJob that cannot become a HyperJob; it may pass."""
DEADLINE: Final = "DeadlineExceeded"
_COMPLETED: Final = "AllJobsCompleted"
_LONGEST: Final = 64
_MOST_METRICS: Final = 256


@dataclass(frozen=True, slots=True)
class Verdict:
    """One condition that a TrainJob must have: its type, status, reason and message."""

    type: str
    true: bool
    reason: str
    message: str


def is_finished(trainjob: Object) -> bool:
    """Return whether the TrainJob has ended for good."""
    status = mapping(trainjob.get("status"))
    failed = condition(status, FAILED)
    return condition(status, COMPLETE).get("status") == "True" or (
        failed.get("status") == "True" and failed.get("reason") != NOT_SUPPORTED
    )


def started(trainjob: Object) -> datetime | None:
    """Return the time from which activeDeadlineSeconds counts: the creation or the last resume."""
    suspended = condition(mapping(trainjob.get("status")), SUSPENDED)
    if suspended.get("status") == "False":
        return timestamp(suspended.get("lastTransitionTime"))
    return timestamp(at(trainjob, "metadata", "creationTimestamp"))


def suspension(trainjob: Object) -> Verdict | None:
    """Return the condition Suspended; None for a TrainJob that was never suspended."""
    if at(trainjob, "spec", "suspend") is True:
        return Verdict(SUSPENDED, true=True, reason="Suspended", message="TrainJob is suspended")
    if condition(mapping(trainjob.get("status")), SUSPENDED):
        return Verdict(SUSPENDED, true=False, reason="Resumed", message="TrainJob is resumed")
    return None


def outcome(hyperjob: Object) -> Verdict | None:
    """Return the condition with which a HyperJob ended; None while it runs."""
    status = mapping(hyperjob.get("status"))
    for ended, kind in ((CONDITION_COMPLETED, COMPLETE), (CONDITION_FAILED, FAILED)):
        found = condition(status, ended)
        if found.get("status") == "True":
            reason = string(found.get("reason")) or ended
            return Verdict(
                kind,
                true=True,
                reason=_COMPLETED if kind == COMPLETE else reason,
                message=string(found.get("message")),
            )
    return None


def status_of(
    trainjob: Object,
    hyperjob: Object | None,
    verdicts: Mapping[str, Verdict],
    *,
    now: datetime,
) -> Object:
    """Return the status of a TrainJob with these conditions by type.

    A condition of the type Failed that is not given and may pass is removed; without a HyperJob
    the numbers of its sub-jobs stay as they are.
    """
    old = mapping(trainjob.get("status"))
    status = {name: value for name, value in old.items() if name != "conditions"}
    kept = {string(each.get("type")): each for each in objects(old.get("conditions"))}
    if kept.get(FAILED, {}).get("reason") == NOT_SUPPORTED:
        del kept[FAILED]
    for kind, verdict in verdicts.items():
        kept[kind] = _condition_of(kept.get(kind, {}), verdict, trainjob, now=now)
    if kept or "conditions" in old:
        status["conditions"] = list(kept.values())
    if hyperjob is not None:
        if jobs := _jobs_status(trainjob, hyperjob):
            status["jobsStatus"] = jobs
        if progress := _progress(mapping(at(hyperjob, "status", "training"))):
            status["trainerStatus"] = progress
    return status


def _condition_of(old: Object, verdict: Verdict, trainjob: Object, *, now: datetime) -> Object:
    """Return the condition of a verdict; an equal status keeps the time of the `old` condition."""
    same = old.get("status") == ("True" if verdict.true else "False")
    return {
        "type": verdict.type,
        "status": "True" if verdict.true else "False",
        "reason": verdict.reason,
        "message": verdict.message[:32768],
        "lastTransitionTime": string(old.get("lastTransitionTime")) if same else rfc3339(now),
        **(
            {"observedGeneration": generation}
            if (generation := integer(at(trainjob, "metadata", "generation"))) is not None
            and "observedGeneration" in old
            else {}
        ),
    }


def _jobs_status(trainjob: Object, hyperjob: Object) -> list[Object]:
    """Return the numbers of sub-jobs, under the name of the job that trains."""
    jobs = table.read_all(JobStatus, at(hyperjob, "status", "jobs"))
    if not jobs:
        return []
    phases = [JobPhase(job.phase) for job in jobs]
    suspended = at(trainjob, "spec", "suspend") is True
    active = [job for job in jobs if JobPhase(job.phase) is not JobPhase.UNKNOWN]
    active = [job for job in active if not job.has_ended]
    counts = {
        "ready": sum(0 < job.pods <= job.running for job in active),
        "succeeded": phases.count(JobPhase.COMPLETED),
        "failed": sum(job.has_failed for job in jobs) if not suspended else 0,
        "active": len(active),
        "suspended": len(jobs) - phases.count(JobPhase.COMPLETED) if suspended else 0,
    }
    return [{"name": _job_name(hyperjob), **counts}]


def _job_name(hyperjob: Object) -> str:
    """Return Trainer's name of the job that trains, from the pods of the HyperJob; else `node`."""
    for job in objects(at(hyperjob, "spec", "replicatedJobs")):
        for task in objects(at(job, "templateSpec", "tasks")):
            labels = string_map(at(task, "template", "metadata", "labels"))
            if name := labels.get(REPLICATED_JOB_NAME):
                return name
    return "node"


def _progress(training: Object) -> Object:
    """Return `trainerStatus` of the progress that the program reported; empty before it did."""
    updated = string(training.get("updateTime"))
    if not updated:
        return {}
    found: Object = {"lastUpdatedTime": updated}
    percent = integer(training.get("percent"))
    if percent is not None:
        found["progressPercentage"] = min(max(percent, 0), 100)
    end, then = timestamp(training.get("estimatedCompletionTime")), timestamp(updated)
    if end is not None and then is not None:
        found["estimatedRemainingSeconds"] = max(0, int((end - then).total_seconds()))
    metrics = [
        {"name": name, "value": value}
        for name, value in sorted(string_map(training.get("metrics")).items())
        if 0 < len(name) <= _LONGEST and 0 < len(value) <= _LONGEST
    ]
    if metrics:
        found["metrics"] = metrics[:_MOST_METRICS]
    return found


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


_FIXED: Final = "the HyperJob exists already: delete the TrainJob and create another"


def judge(
    trainjob: Object,
    old: Object | None,
    runtime: Object | None,
    namespace: Object | None,
    context: Context,
) -> Decision:
    """Return the decision about a new TrainJob, or about a change of `old`."""
    if not runs_as_hyperjob(trainjob, runtime, namespace):
        return ALLOWED
    if at(trainjob, "metadata", "deletionTimestamp") is not None:
        return ALLOWED
    if old is not None:
        return Decision(errors=tuple(_changes(trainjob, old)))
    if runtime is None:
        return Decision(
            errors=(not_found(RUNTIME_REF, at(trainjob, "spec", "runtimeRef", "name")),)
        )
    found = convert(trainjob, runtime)
    if found.hyperjob is None:
        return Decision(errors=found.refusals)
    decided = validate_create(found.hyperjob, context=context)
    name = str(at(trainjob, "metadata", "name"))
    errors = [
        replace(invalid(SPEC, name, f"its HyperJob is refused: {error}"), remedy=error.remedy)
        for error in decided.errors
    ]
    return Decision(errors=tuple(errors), warnings=decided.warnings)


def _changes(trainjob: Object, old: Object) -> list[FieldError]:
    """Return the refusals of changes that the HyperJob could not follow."""
    errors = []
    spread = [
        string_map(at(each, "metadata", "annotations")).get(SPREAD) for each in (old, trainjob)
    ]
    if spread[0] != spread[1]:
        errors.append(forbidden(METADATA.child("annotations").key(SPREAD), _FIXED))
    if _patches(old) != _patches(trainjob):
        errors.append(forbidden(SPEC.child("runtimePatches"), _FIXED))
    return errors


def _patches(trainjob: Object) -> list[Object]:
    """Return the patches without their times, which Trainer's webhook writes."""
    return [
        {name: value for name, value in patch.items() if name != "time"}
        for patch in objects(at(trainjob, "spec", "runtimePatches"))
    ]
