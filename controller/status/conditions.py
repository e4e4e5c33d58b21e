"""The conditions Completed and Failed, in the Go controller's words.

Set only when every sub-job has ended; conditions of others are kept.
"""

from collections.abc import Sequence

from controller.status.jobs import JobState
from hyperjob.api import conditions
from hyperjob.api.batch import JobPhase
from hyperjob.api.meta import Condition, Object
from hyperjob.api.names import CONDITION_COMPLETED, CONDITION_FAILED


def is_finished(status: Object) -> bool:
    """Tell whether a HyperJob has ended, by its stored conditions."""
    current = conditions.parse(status)
    return any(
        conditions.is_true(current, kind) for kind in (CONDITION_COMPLETED, CONDITION_FAILED)
    )


def conditions_of(
    status: Object, jobs: Sequence[JobState], *, generation: int, now: str
) -> list[Object]:
    """Return the conditions to have."""
    current = conditions.parse(status)
    for kind in (CONDITION_COMPLETED, CONDITION_FAILED):
        current = conditions.remove(current, kind)
    ended = _ended(jobs)
    if ended is not None:
        known = conditions.find(conditions.parse(status), ended.type)
        if known is not None:
            current = (*current, known)
        ended = ended.model_copy(update={"observed_generation": generation})
        current = conditions.set_condition(current, ended, now=now)
    return [condition.to_object() for condition in current]


def _ended(jobs: Sequence[JobState]) -> Condition | None:
    if not jobs or not all(job.is_terminal for job in jobs):
        return None
    phases = [job.job_phase for job in jobs]
    completed = phases.count(JobPhase.COMPLETED)
    if completed == len(jobs):
        return Condition(
            type=CONDITION_COMPLETED,
            status="True",
            reason="AllChildVCJobsCompleted",
            message=f"All {completed} child vcJobs completed",
        )
    return Condition(
        type=CONDITION_FAILED,
        status="True",
        reason="SomeChildVCJobsUnsuccessful",
        message=f"HyperJob failed: {completed} completed, {phases.count(JobPhase.FAILED)} failed,"
        f" {phases.count(JobPhase.ABORTED)} aborted, {phases.count(JobPhase.TERMINATED)}"
        " terminated",
    )
