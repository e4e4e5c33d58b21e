"""The end of a HyperJob, Completed or Failed, by the present attempts of its own sub-jobs.

The quorum: how many sub-jobs must train together, and when the training has ended.

`minAvailable` sub-jobs start together. After that the others join one by one, and the training goes
on while at least `quorum` sub-jobs train.
"""

from collections.abc import Mapping, Sequence

from hyperjob_core.api.choices import SuccessOperator
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.plugins import lighthouse_of
from hyperjob_core.api.wire import objects, string
from hyperjob_engine.lifecycle.decisions import End, Member
from hyperjob_engine.lifecycle.dependencies import Waiting
from hyperjob_engine.lifecycle.loss import Loss
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import HyperJob, Job, Observed, Ownership
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
    own = [(sub_job, child) for sub_job, child in members if _is_own(child.job)]
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


def _is_own(job: Job | None) -> bool:
    """Return whether a vcjob counts for this HyperJob; for a deleted one its record counts."""
    return job is None or job.ownership is Ownership.OURS


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
    if any(_trains(child) and not child.is_terminal for child in _within_reach(members, losses)):
        return ""
    return f"{len(completed)} of {len(members)} sub-jobs completed, and no other runs"


def _within_reach(members: Sequence[Member], losses: Mapping[str, Loss]) -> list[Child]:
    return [
        child
        for _, child in members
        if (loss := losses.get(child.name)) is None or not loss.is_lost
    ]


def _trains(child: Child) -> bool:
    runs = child.phase in (JobPhase.RUNNING, JobPhase.COMPLETING)
    return (runs and child.exists) or child.phase is JobPhase.COMPLETED
