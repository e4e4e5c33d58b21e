"""What a HyperJob's status says of the training itself: its progress, and what its time went to.

Numbers that need decimals are strings, as the Kubernetes API conventions ask for.
"""

from typing import Annotated

from pydantic import Field

from hyperjob.api.choices import TimeUse
from hyperjob.api.model import Count, Int64, Model, Time

Step = Annotated[Int64, Field(ge=0)]
Milliseconds = Annotated[Int64, Field(ge=0)]


class Reported(Model):
    """What a program last said of its progress."""

    step: Step = Field(default=0, description="Last step that it reported.")
    update_time: Time | None = Field(default=None, description="When it reported that step.")
    start_step: Step = Field(
        default=0,
        description="First step that it reported since it last started: it resumed there.",
    )
    start_time: Time | None = Field(default=None, description="When it reported that first step.")
    saved_step: Step | None = Field(
        default=None, description="Step of its last complete checkpoint."
    )
    saved_time: Time | None = Field(
        default=None, description="When that step was made: the work since then is not saved."
    )


class SubJobTraining(Reported):
    """What the program of a sub-job last said of its progress; kept when it is made again."""

    attempt: Count = Field(default=0, description="Attempt of the sub-job that said it.")
    uid: str = Field(default="", description="UID of the vcjob that said it.")


class TrainingStatus(Reported):
    """How far the training is, by the lines that its program prints.

    The step is the furthest of any sub-job, the saved step the least of all that save: all can
    resume from there.
    """

    progress: str = Field(
        default="",
        description="Percentage of the steps, or the step where their number is unknown.",
    )
    steps: Step | None = Field(default=None, description="Steps that the training makes in all.")
    percent: Count | None = Field(default=None, description="Steps made, in percent of all.")
    steps_per_second: str | None = Field(
        default=None, description="Steps made in a second of late, a decimal number."
    )
    estimated_completion_time: Time | None = Field(
        default=None, description="When the last step will be made at this speed."
    )
    metrics: dict[str, str] | None = Field(
        default=None, description="Metrics that the program last reported, decimal numbers by name."
    )


class StoppedTraining(Reported):
    """A stop of the training, and its last progress lines, until it says where it resumed."""

    time: Time | None = Field(default=None, description="When the training stopped.")
    since: Time | None = Field(
        default=None, description="Since when the work was done that the stop ended."
    )
    kept_until: Time | None = Field(
        default=None,
        description="Until when that work counts as kept: at first the time of the last checkpoint,"
        " then when the step was made at which the training resumed.",
    )
    cause: TimeUse | None = Field(default=None, description="lostToFailures or lostToPlannedStops.")


class GoodputStatus(Model):
    """What the time since the creation of the HyperJob went to."""

    ratio: str | None = Field(
        default=None,
        description="Productive time, divided by all time but that suspended: a decimal number"
        " from 0 to 1, as of the last change of this status.",
    )
    state: TimeUse | None = Field(
        default=None, description="What the time since `since` goes to; unset after the end."
    )
    since: Time | None = Field(
        default=None, description="Since when; the time before is counted in milliseconds."
    )
    share: str | None = Field(
        default=None,
        description="Part of the sub-jobs that train while the state is degraded: this part of the"
        " time is productive, a decimal number from 0 to 1.",
    )
    milliseconds: dict[str, Milliseconds] | None = Field(
        default=None,
        description="Milliseconds until `since` by what they went to: waitingForQueue,"
        " waitingForCapacity, blocked, starting, productive, degraded, lostToFailures,"
        " lostToPlannedStops, suspended, finishing.",
    )
    stopped: StoppedTraining | None = Field(
        default=None,
        description="The last stop, until the program says where it resumed; what was lost is"
        " corrected by that.",
    )
