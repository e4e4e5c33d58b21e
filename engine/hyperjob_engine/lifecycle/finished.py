"""The end of a HyperJob, Completed or Failed, and the plan for an ended HyperJob.

The end follows from the present attempts of its own sub-jobs. `minAvailable` sub-jobs start
together. After that the others join one by one, and the training goes on while at least `quorum`
sub-jobs train.

The plan for an ended HyperJob creates and changes no sub-job: it releases quota, deletes leftover
sub-jobs, and deletes the HyperJob after its TTL. Volcano Global counts the ResourceBinding of an
ended sub-job until its deletion. The controller removes the request from it, in every pass:
Karmada's detector may write the request again. The vcjob, its pods and its logs stay as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from hyperjob_core.api.choices import SuccessOperator
from hyperjob_core.api.duration import later, seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.plugins import lighthouse_of
from hyperjob_core.api.wire import mapping, objects, string, timestamp
from hyperjob_engine.lifecycle.decisions import End, Loss, Member, deletion
from hyperjob_engine.lifecycle.dependencies import Waiting
from hyperjob_engine.lifecycle.requests import refuse_after_end
from hyperjob_engine.model.observed import HyperJob, Observed, Ownership, QueueAdmission, is_end
from hyperjob_engine.model.parse import with_status
from hyperjob_engine.model.planned import (
    Action,
    DeleteHyperJob,
    Plan,
    ReleaseQuota,
    ReleaseScheduling,
)
from hyperjob_engine.model.subjobs import Child, child_of
from hyperjob_engine.reasons.reason import Reason


def ending(
    observed: Observed,
    members: Sequence[Member],
    waiting: Waiting,
    losses: Mapping[str, Loss],
) -> End | None:
    """Return the end of the HyperJob; None while it goes on.

    A failure to which the failure policy answers with a restart is not an end.
    """
    if not members:
        return None
    # For a deleted vcjob its record counts.
    own = [
        (sub_job, child)
        for sub_job, child in members
        if child.job is None or child.job.ownership is Ownership.OURS
    ]
    everything = len(own) == len(members)
    completed = [member for member in own if member[1].phase is JobPhase.COMPLETED]
    if everything and len(completed) == len(members):
        return End(completed=True)
    succeeded = _success(observed.hyperjob, members, completed)
    if succeeded:
        return End(completed=True, reason=Reason.SUCCESS_POLICY, why=succeeded)
    trained = has_trained(observed.hyperjob, members, losses)
    if trained and everything:
        return End(completed=True, reason=Reason.JOBS_COMPLETED, why=trained)
    if observed.hyperjob.failure_policy is not None or not everything:
        return None
    if not all(child.is_terminal or child.name in waiting.hopeless for _, child in own):
        return None
    if waiting.hopeless:
        failed = [child.name for _, child in own if child.phase.is_failed]
        why = f"{', '.join(failed[:3])} did not complete, and others wait for it"
        return End(completed=False, reason=Reason.DEPENDENCY_FAILED, why=why)
    return End(completed=False)


def _success(hyperjob: HyperJob, members: Sequence[Member], completed: Sequence[Member]) -> str:
    """Return how the sub-jobs satisfy the success policy; empty while they do not."""
    policy = hyperjob.success_policy
    if policy is None:
        return ""
    done = [child.name for job, child in completed if _is_target(job.group.name, policy.targets)]
    wanted = sum(_is_target(job.group.name, policy.targets) for job, _ in members)
    if policy.operator is SuccessOperator.ANY:
        return f"{done[0]} completed, and successPolicy asks for any one" if done else ""
    if not wanted or len(done) < wanted:
        return ""
    return f"all {wanted} sub-jobs that successPolicy names completed"


def _is_target(group: str, targets: frozenset[str]) -> bool:
    return not targets or group in targets


def trainers(hyperjob: HyperJob) -> frozenset[str]:
    """Return the names of the replicatedJobs that train: all but those with only a lighthouse."""
    task = lighthouse_of(hyperjob.plugins)
    return frozenset(
        group.name
        for group in hyperjob.replicated_jobs
        if not task
        or any(string(each.get("name")) != task for each in objects(group.template.get("tasks")))
    )


def together(hyperjob: HyperJob, children: Sequence[Child], *, able: int) -> int:
    """Return how many of the `able` sub-jobs with met dependencies need a place together."""
    wanted = hyperjob.min_available
    least = len(children) if wanted is None else wanted
    if hyperjob.quorum is not None and any(_trains(child) for child in children):
        least = min(least, hyperjob.quorum)
    return max(1, min(least, able))


def has_trained(hyperjob: HyperJob, members: Sequence[Member], losses: Mapping[str, Loss]) -> str:
    """Return why a training with a quorum has ended; empty while it goes on.

    The sub-jobs of a training complete together: a sub-job that is recreated after that would have
    no work left.
    """
    if hyperjob.quorum is None:
        return ""
    groups = trainers(hyperjob)
    members = [member for member in members if member[0].group.name in groups]
    completed = [child for _, child in members if child.phase is JobPhase.COMPLETED]
    if len(completed) < max(1, hyperjob.quorum):
        return ""
    lost = {name for name, loss in losses.items() if loss.is_lost}
    reachable = (child for _, child in members if child.name not in lost)
    if any(_trains(child) and not child.is_terminal for child in reachable):
        return ""
    return f"{len(completed)} of {len(members)} sub-jobs completed, and no other runs"


def _trains(child: Child) -> bool:
    runs = child.phase in (JobPhase.RUNNING, JobPhase.COMPLETING)
    return (runs and child.exists) or child.phase is JobPhase.COMPLETED


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
        status |= {"requests": requests | dict(refused.handled)}
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
