"""The status fields about checkpoints, planned stops and lost work."""

from pydantic import Field

from hyperjob_core.api.checkpoint import StopCause
from hyperjob_core.api.markers import atomic_list
from hyperjob_core.api.model import Count, Model, Time
from hyperjob_core.api.training import Milliseconds, Step


class StopStatus(Model):
    """A planned stop in progress: the controller recreates no sub-job before all have ended."""

    cause: StopCause | None = Field(default=None, description="Why the sub-jobs are stopped.")
    since: Time | None = Field(default=None, description="When the controller decided the stop.")
    until: Time | None = Field(
        default=None, description="When the grace period of all pods is over at the latest."
    )
    jobs: tuple[str, ...] | None = Field(
        default=None,
        description="Names of the stopped sub-jobs.",
        json_schema_extra=atomic_list(),
    )


class CheckpointStatus(Model):
    """The step from which sub-jobs start, and the work that the last stop may have lost."""

    resume_step: Step | None = Field(
        default=None,
        description="Last step that all sub-jobs are known to have saved; unset: unknown. New"
        " sub-jobs start from it.",
    )
    stopped_step: Step | None = Field(
        default=None,
        description="Last reported step before the last stop, until the program reports the step"
        " from which it resumed.",
    )
    stopped_time: Time | None = Field(
        default=None, description="When the program reported that step."
    )
    kept_step: Step | None = Field(
        default=None,
        description="Step of the last checkpoint before that stop, or the step from which the"
        " program had started.",
    )
    kept_time: Time | None = Field(
        default=None, description="When the program saved that checkpoint, or had started."
    )
    stop_cause: StopCause | None = Field(default=None, description="Cause of that stop.")


class LostWork(Model):
    """Steps that the program repeated, by the cause of the stop."""

    cause: StopCause = Field(description="Cause of the stops.")
    stops: Count = Field(default=0, description="Number of stops of this cause.")
    steps: Step = Field(
        default=0,
        description="Last reported step minus the step of the resumption, summed over all stops.",
    )
    milliseconds: Milliseconds = Field(
        default=0, description="Time that the program took for those steps."
    )
