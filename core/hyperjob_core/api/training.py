"""The status types of the training: its progress and its goodput.

Decimal numbers are strings, as the Kubernetes API conventions demand.
"""

from typing import Annotated

from pydantic import Field

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.markers import atomic_list
from hyperjob_core.api.model import Count, Int64, Model, Time

Step = Annotated[Int64, Field(ge=0)]
Milliseconds = Annotated[Int64, Field(ge=0)]


class Reported(Model):
    """The last reported progress of a program."""

    step: Step = Field(default=0, description="Last step that the program reported.")
    update_time: Time | None = Field(
        default=None, description="When the program reported that step."
    )
    start_step: Step = Field(
        default=0,
        description="First step that the program reported after its last start: the step from"
        " which it resumed.",
    )
    start_time: Time | None = Field(
        default=None, description="When the program reported that first step."
    )
    saved_step: Step | None = Field(
        default=None, description="Step of the last complete checkpoint."
    )
    saved_time: Time | None = Field(
        default=None, description="Time of that checkpoint: the work since then is not saved."
    )


class SubJobTraining(Reported):
    """The last reported progress of a sub-job's program; it stays when the sub-job is recreated."""

    attempt: Count = Field(
        default=0, description="Attempt of the sub-job that reported the progress."
    )
    uid: str = Field(default="", description="UID of the vcjob that reported the progress.")


class Straggler(Model):
    """The process for which the others wait in each step."""

    cluster: str = Field(description="Cluster of the pod.")
    pod: str = Field(description="Name of the pod.")
    job: str = Field(default="", description="Sub-job of the pod.")
    part: str = Field(
        default="",
        description="Part of their time that the others wait for it: a decimal number from 0 to 1.",
    )
    seconds: str = Field(
        default="", description="The same in seconds of each step, a decimal number."
    )


class TrainingStatus(Reported):
    """The progress of the training, from the progress lines of its program.

    The step is the furthest step of any sub-job. The saved step is the least of all sub-jobs that
    save: all can resume from it.
    """

    progress: str = Field(
        default="",
        description="Percentage of the steps, or the step if their number is unknown.",
    )
    steps: Step | None = Field(default=None, description="Total steps of the training.")
    percent: Count | None = Field(default=None, description="Steps done, in percent of all.")
    steps_per_second: str | None = Field(
        default=None, description="Recent steps per second, a decimal number."
    )
    estimated_completion_time: Time | None = Field(
        default=None, description="When the training will end at this speed."
    )
    straggler: Straggler | None = Field(
        default=None,
        description="The process for which the others wait, where programs report their waiting.",
    )
    phase: str = Field(
        default="",
        description="What the program has announced to do instead of steps, such as evaluate.",
    )
    metrics: dict[str, str] | None = Field(
        default=None,
        description="The last reported metrics of the program, decimal numbers by name.",
    )


class Suspect(Model):
    """A pod for which the other pods of a training wait."""

    cluster: str = Field(description="Cluster of the pod.")
    pod: str = Field(description="Name of the pod.")
    job: str = Field(default="", description="Sub-job of the pod.")


class StallStatus(Model):
    """A training that makes no steps against its own pace, until it makes one or starts again."""

    since: Time | None = Field(default=None, description="When the last step was reported.")
    step: Step = Field(default=0, description="That step.")
    jobs: tuple[str, ...] | None = Field(
        default=None,
        description="Sub-jobs whose programs report no steps.",
        json_schema_extra=atomic_list(),
    )
    whole: bool = Field(
        default=False, description="Whether these are all sub-jobs whose programs report."
    )
    message: str = Field(
        default="", description="Message for people: since when, and what the processes do."
    )
    suspects: tuple[Suspect, ...] | None = Field(
        default=None,
        description="Pods for which the others wait, as far as the stacks of the processes show.",
        json_schema_extra=atomic_list(),
    )
    restart_time: Time | None = Field(
        default=None, description="When the controller restarts them, as onNoProgress asks."
    )


class StoppedTraining(Reported):
    """A stop of the training and its last progress, until the program reports where it resumed."""

    time: Time | None = Field(default=None, description="When the training stopped.")
    since: Time | None = Field(
        default=None, description="When the work that the stop interrupted had begun."
    )
    kept_until: Time | None = Field(
        default=None,
        description="The time up to which that work counts as kept: at first the time of the last"
        " checkpoint, then the time of the step from which the training resumed.",
    )
    cause: TimeUse | None = Field(default=None, description="lostToFailures or lostToPlannedStops.")


class GoodputStatus(Model):
    """The use of the time since the creation of the HyperJob."""

    ratio: str | None = Field(
        default=None,
        description="Productive time divided by all time that was not suspended, at the last"
        " change of this status: a decimal number from 0 to 1.",
    )
    state: TimeUse | None = Field(
        default=None, description="The use of the time after `since`; unset after the end."
    )
    since: Time | None = Field(
        default=None,
        description="Start of the present use; the time before it is counted in milliseconds.",
    )
    share: str | None = Field(
        default=None,
        description="Share of the sub-jobs that train while the state is degraded: this share of"
        " the time is productive. A decimal number from 0 to 1.",
    )
    milliseconds: dict[str, Milliseconds] | None = Field(
        default=None,
        description="Milliseconds up to `since` by use: waitingForQueue, waitingForCapacity,"
        " blocked, starting, productive, stalled, degraded, lostToFailures, lostToPlannedStops,"
        " suspended, finishing.",
    )
    stopped: StoppedTraining | None = Field(
        default=None,
        description="The last stop, until the program reports where it resumed, which corrects the"
        " lost time.",
    )
