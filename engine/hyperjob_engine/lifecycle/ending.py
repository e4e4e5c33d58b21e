"""The end of a HyperJob, Completed or Failed, by the present attempts of its own sub-jobs."""

from collections.abc import Mapping, Sequence

from hyperjob_core.api.choices import SuccessOperator
from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.lifecycle.decisions import End, Member
from hyperjob_engine.lifecycle.dependencies import Waiting
from hyperjob_engine.lifecycle.loss import Loss
from hyperjob_engine.lifecycle.quorum import has_trained
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
