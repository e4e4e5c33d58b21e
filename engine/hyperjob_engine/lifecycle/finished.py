"""The plan for an ended HyperJob: release quota, delete leftover sub-jobs, delete it after its TTL.

The plan creates and changes no sub-job.

Corrections of Volcano Global's quota: ended sub-jobs, and ResourceBindings that it has left out.

Volcano Global counts the ResourceBinding of an ended sub-job until its deletion. The controller
removes the request from it, in every pass: Karmada's detector may write the request again. The
vcjob, its pods and its logs stay as they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from hyperjob_core.api.duration import later, seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import mapping, objects, string, timestamp
from hyperjob_engine.lifecycle.delete import deletion
from hyperjob_engine.lifecycle.requests import refuse_after_end
from hyperjob_engine.model.child import Child, child_of
from hyperjob_engine.model.observed import Observed, Ownership, QueueAdmission, is_end
from hyperjob_engine.model.parse import with_status
from hyperjob_engine.model.planned import (
    Action,
    DeleteHyperJob,
    Plan,
    ReleaseQuota,
    ReleaseScheduling,
)
from hyperjob_engine.reasons.reason import Reason


def releases(observed: Observed, children: Iterable[Child]) -> Iterator[ReleaseQuota]:
    """Yield the actions that remove ended sub-jobs from Volcano Global's quota."""
    if observed.admission is not QueueAdmission.VOLCANO_GLOBAL:
        return
    for child in children:
        binding, job = child.binding, child.job
        if binding is None or job is None or job.ownership is not Ownership.OURS:
            continue
        if binding.requests and child.exists and child.is_terminal:
            yield ReleaseQuota(name=child.name, binding=binding.name, binding_uid=binding.uid)


def forgotten(observed: Observed, children: Iterable[Child]) -> Iterator[ReleaseScheduling]:
    """Yield the releases of ResourceBindings that Volcano Global left out despite free quota."""
    for child in children:
        binding = child.binding
        if (
            child.name in observed.forgotten
            and binding is not None
            and binding.scheduling_suspended
        ):
            yield ReleaseScheduling(name=child.name, binding=binding.name, binding_uid=binding.uid)


def after_end(observed: Observed) -> Plan:
    """Return the plan for an ended HyperJob."""
    actions: list[Action] = list(_leftovers(observed))
    actions += releases(observed, (child_of(observed, name) for name in sorted(observed.jobs)))
    wait: timedelta | None = None
    left = _time_to_live(observed)
    if left is not None and left > timedelta():
        wait = left
    elif left is not None and not actions:
        hyperjob = observed.hyperjob
        return Plan(actions=(DeleteHyperJob(name=hyperjob.name, uid=hyperjob.uid),))
    status = _final(observed)
    refused = refuse_after_end(observed.hyperjob)
    if refused is not None:
        requests = mapping(observed.hyperjob.status.get("requests"))
        status |= {"requests": requests | dict(refused.restart.handled)}
    return Plan(actions=tuple(actions), status=status, requeue_after=wait)


def needs_more(observed: Observed, status: dict[str, object]) -> bool:
    """Return whether the plan after the write of this final status has an action or a wait."""
    ended = replace(observed, hyperjob=with_status(observed.hyperjob, status))
    return ended.hyperjob.is_finished and after_end(ended) != Plan(status=_final(ended))


def _final(observed: Observed) -> Object:
    """Return the stored status with the present generation as `observedGeneration`.

    A HyperJob that ended under the Go controller has conditions alone: the state that tables show,
    and `completionTime`, are taken from them.
    """
    hyperjob = observed.hyperjob
    status = {**hyperjob.status, "observedGeneration": hyperjob.generation}
    if status.get("state"):
        return status
    end = next(filter(is_end, objects(status.get("conditions"))))
    since = string(end.get("lastTransitionTime"))
    state = {"phase": end["type"], "reason": end.get("reason"), "message": end.get("message")}
    return {"completionTime": since, **status, "state": {**state, "lastTransitionTime": since}}


def _leftovers(observed: Observed) -> Iterator[Action]:
    """Yield the deletions of sub-jobs that run although their record has ended, or are unknown."""
    if not observed.hyperjob.records:
        return  # it ended under the Go controller, without records of sub-jobs
    for name in sorted({*observed.jobs, *observed.policies}):
        child = child_of(observed, name)
        if _outlived(child):
            yield from deletion(child)


def _outlived(child: Child) -> bool:
    """Return whether a sub-job has objects that an ended HyperJob must not have.

    They are those that its end or a restart stops, those of a failed sub-job that runs again, and
    those without a record, of vcjobs only its own with its labels. All others stay, with their
    logs.
    """
    record = child.record
    if record is None:
        job, policy = child.job, child.policy
        if job is not None:
            return job.ownership is Ownership.OURS and job.labelled
        return policy is not None
    if record.reason == Reason.ENDED or child.is_outdated:
        return True
    runs = child.report is not None and not child.report.phase.is_terminal
    return runs and JobPhase(record.phase).is_failed


def _time_to_live(observed: Observed) -> timedelta | None:
    """Return the time until the deletion of the HyperJob; None without a TTL."""
    limit = observed.hyperjob.ttl_seconds_after_finished
    if limit is None:
        return None
    status = observed.hyperjob.status
    ended = timestamp(status.get("completionTime"))
    if ended is None:
        times = [
            timestamp(item.get("lastTransitionTime"))
            for item in filter(is_end, objects(status.get("conditions")))
        ]
        ended = max((time for time in times if time is not None), default=observed.now)
    return later(ended, seconds(limit)) - observed.now
