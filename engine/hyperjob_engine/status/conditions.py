"""The conditions Completed and Failed of a HyperJob, with the messages of the Go controller.

The controller sets them only after every sub-job has ended, and keeps conditions of other types.
"""

from collections.abc import Sequence

from hyperjob_core.api import conditions
from hyperjob_core.api.meta import Object
from hyperjob_core.api.model import Condition
from hyperjob_core.api.names import CONDITION_COMPLETED, CONDITION_FAILED
from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.lifecycle.decisions import End
from hyperjob_engine.status.jobs import JobState


def conditions_of(
    status: Object, jobs: Sequence[JobState], end: End | None, *, generation: int, now: str
) -> list[Object]:
    """Return the conditions of the HyperJob; before its end only those of other components."""
    current = conditions.parse(status)
    for kind in (CONDITION_COMPLETED, CONDITION_FAILED):
        current = conditions.remove(current, kind)
    if end is not None:
        ended = _end_condition(jobs, end)
        known = conditions.find(conditions.parse(status), ended.type)
        if known is not None:
            current = (*current, known)
        ended = ended.model_copy(update={"observed_generation": generation})
        current = conditions.set_condition(current, ended, now=now)
    return [condition.to_object() for condition in current]


def _end_condition(jobs: Sequence[JobState], end: End) -> Condition:
    """Return the condition of an end; without a cause, the phases of the sub-jobs explain it."""
    if end.why:
        kind = CONDITION_COMPLETED if end.completed else CONDITION_FAILED
        return Condition(type=kind, status="True", reason=end.reason, message=end.why)
    phases = [job.job_phase for job in jobs]
    completed = phases.count(JobPhase.COMPLETED)
    if end.completed:
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
