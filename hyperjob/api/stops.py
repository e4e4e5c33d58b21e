"""What the status of a HyperJob says of checkpoints, of a planned stop, and of lost work."""

from pydantic import Field

from hyperjob.api.checkpoint import StopCause
from hyperjob.api.markers import atomic_list
from hyperjob.api.model import Count, Model, Time
from hyperjob.api.training import Milliseconds, Step


class StopStatus(Model):
    """A planned stop that is going on: nothing is made again before all sub-jobs have ended."""

    cause: StopCause | None = Field(default=None, description="Why the sub-jobs are stopped.")
    since: Time | None = Field(default=None, description="When the stop was decided.")
    until: Time | None = Field(
        default=None, description="When the grace period of all pods is over at the latest."
    )
    jobs: tuple[str, ...] | None = Field(
        default=None,
        description="Names of the sub-jobs that are stopped.",
        json_schema_extra=atomic_list(),
    )


class CheckpointStatus(Model):
    """The step that sub-jobs start from, and what the last stop may have lost."""

    resume_step: Step | None = Field(
        default=None,
        description="Last step that all sub-jobs are known to have saved; unset: not known. The"
        " sub-jobs that are made next start from it.",
    )
    stopped_step: Step | None = Field(
        default=None,
        description="Last step that was reported before the last stop, until the program reports"
        " the step that it resumed from.",
    )
    stopped_time: Time | None = Field(default=None, description="When that step was reported.")
    kept_step: Step | None = Field(
        default=None,
        description="Step of the last checkpoint before that stop, or the step that the program had"
        " started from.",
    )
    kept_time: Time | None = Field(default=None, description="When that step was made.")
    stop_cause: StopCause | None = Field(default=None, description="Why that stop came.")


class LostWork(Model):
    """Steps that were made and then made again, by the cause of the stop."""

    cause: StopCause = Field(description="Why the sub-jobs were stopped.")
    stops: Count = Field(default=0, description="Stops of this cause.")
    steps: Step = Field(
        default=0, description="Last step reported less the step resumed from, over all stops."
    )
    milliseconds: Milliseconds = Field(
        default=0, description="Time that the program took to make those steps."
    )
