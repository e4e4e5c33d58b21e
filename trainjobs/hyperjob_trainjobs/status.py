"""The status of a TrainJob, derived from its HyperJob in Trainer's own form.

Conditions of the types Suspended, Complete and Failed; the numbers of sub-jobs as those of the
child Jobs; the progress of the training as `trainerStatus`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import CONDITION_COMPLETED, CONDITION_FAILED
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.trainer import COMPLETE, FAILED, REPLICATED_JOB_NAME, SUSPENDED
from hyperjob_core.api.wire import (
    at,
    condition,
    count,
    integer,
    mapping,
    objects,
    rfc3339,
    string,
    string_map,
    timestamp,
)

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
    jobs = objects(at(hyperjob, "status", "jobs"))
    if not jobs:
        return []
    phases = [JobPhase(string(job.get("phase"))) for job in jobs]
    suspended = at(trainjob, "spec", "suspend") is True
    active = [
        job
        for job, phase in zip(jobs, phases, strict=True)
        if phase is not JobPhase.UNKNOWN and not phase.is_terminal
    ]
    counts = {
        "ready": sum(0 < count(job.get("pods")) <= count(job.get("running")) for job in active),
        "succeeded": phases.count(JobPhase.COMPLETED),
        "failed": sum(phase.is_failed for phase in phases) if not suspended else 0,
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
