"""The status of the training: its progress and its goodput.

Decimal numbers are strings, as the Kubernetes API conventions demand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.table import ATOMIC, COUNT, MICRO, NATURAL, NATURALS, TIME, Table, described

_UPDATED: Final = "When the program reported that step."
_STARTED: Final = "When the program reported that first step."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(Table):
    """The last reported progress of a program."""

    step: int = described("Last step that the program reported.", NATURAL, default=0, always=True)
    updated: datetime | None = described(_UPDATED, MICRO, default=None, alias="updateTime")
    start_step: int = described(
        "First step that the program reported after its last start: the step from which it"
        " resumed.",
        NATURAL,
        default=0,
        always=True,
    )
    started: datetime | None = described(_STARTED, MICRO, default=None, alias="startTime")
    saved_step: int | None = described(
        "Step of the last complete checkpoint.", NATURAL, default=None
    )
    saved: datetime | None = described(
        "Time of that checkpoint: the work since then is not saved.",
        MICRO,
        default=None,
        alias="savedTime",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubJobTraining(Reported):
    """The last reported progress of a sub-job's program; it stays when the sub-job is recreated.

    Only a log has the fields that are not described. `waited` is the part of its time in which the
    program waits for others, `resumed` the time of its first step after it made none for long,
    `ends` when the controller saw that the sub-job has ended. `followed`: the controller has opened
    the logs of a stopping sub-job, and `ended`: it has read the log of a stopping or ended sub-job
    to its end. `reported` is false before the first progress line that the controller has read.
    """

    updated: datetime = described(_UPDATED, MICRO, alias="updateTime")
    started: datetime = described(_STARTED, MICRO, alias="startTime")
    attempt: int = described(
        "Attempt of the sub-job that reported the progress.", COUNT, default=0, always=True
    )
    uid: str = described("UID of the vcjob that reported the progress.", default="", always=True)
    usual: str = described(
        "Steps per second of the program at its usual pace, a decimal number.",
        default="",
        alias="usualStepsPerSecond",
    )
    steps: int | None = None
    steps_per_second: float | None = None
    url: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict, hash=False)
    phase: str = ""
    waited: float | None = None
    slow: bool = False
    resumed: datetime | None = None
    ends: datetime | None = None
    followed: bool = False
    ended: bool = False
    reported: bool = True

    @property
    def kept_until(self) -> datetime:
        """Return the time up to which the work would be kept if the sub-job stopped now."""
        return self.started if self.saved is None else self.saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler(Table):
    """The process for which the others wait in each step."""

    cluster: str = described("Cluster of the pod.")
    pod: str = described("Name of the pod.")
    job: str = described("Sub-job of the pod.", default="")
    rank: int | None = described(
        "Rank of the process, where it is not the first of its pod.", NATURAL, default=None
    )
    part: str = described(
        "Part of their time that the others wait for it: a decimal number from 0 to 1.", default=""
    )
    seconds: str = described("The same in seconds of each step, a decimal number.", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStatus(Reported):
    """The progress of the training, from the progress lines of its program.

    The step is the furthest step of any sub-job. The saved step is the least of all sub-jobs that
    save: all can resume from it.
    """

    progress: str = described(
        "Percentage of the steps, or the step if their number is unknown.", default=""
    )
    steps: int | None = described("Total steps of the training.", NATURAL, default=None)
    percent: int | None = described("Steps done, in percent of all.", COUNT, default=None)
    steps_per_second: str = described("Recent steps per second, a decimal number.", default="")
    usual: str = described(
        "Usual steps per second, while the present speed is less than half of it.",
        default="",
        alias="usualStepsPerSecond",
    )
    completion: datetime | None = described(
        "When the training will end at this speed.",
        default=None,
        alias="estimatedCompletionTime",
    )
    straggler: Straggler | None = described(
        "The process for which the others wait, where programs report their waiting.", default=None
    )
    phase: str = described(
        "What the program has announced to do instead of steps, such as evaluate.", default=""
    )
    url: str = described(
        "Page of this run in a tracker, such as W&B or MLflow, as the program named it.",
        default="",
    )
    metrics: Mapping[str, str] = described(
        "The last reported metrics of the program, decimal numbers by name.", default={}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect(Table):
    """A pod for which the other pods of a training wait."""

    cluster: str = described("Cluster of the pod.")
    pod: str = described("Name of the pod.")
    job: str = described("Sub-job of the pod.", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class StallStatus(Table):
    """A training that makes no steps against its own pace, until it makes one or starts again."""

    since: datetime = described("When the last step was reported.", MICRO)
    step: int = described("That step.", NATURAL, default=0, always=True)
    jobs: tuple[str, ...] = described(
        "Sub-jobs whose programs report no steps.", ATOMIC, default=()
    )
    whole: bool = described(
        "Whether these are all sub-jobs whose programs report.", default=False, always=True
    )
    message: str = described(
        "Message for people: since when, and what the processes do.", default=""
    )
    suspects: tuple[Suspect, ...] = described(
        "Pods for which the others wait, as far as the stacks of the processes show.",
        ATOMIC,
        default=(),
    )
    restart_time: datetime | None = described(
        "When the controller restarts them, as onNoProgress asks.", MICRO, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedTraining(Reported):
    """A stop of the training and its last progress, until the program reports where it resumed."""

    time: str = described("When the training stopped.", TIME, default="")
    since: str = described("When the work that the stop interrupted had begun.", TIME, default="")
    kept_until: str = described(
        "The time up to which that work counts as kept: at first the time of the last"
        " checkpoint, then the time of the step from which the training resumed.",
        TIME,
        default="",
    )
    cause: TimeUse | None = described("lostToFailures or lostToPlannedStops.", default=None)
    size: str = described("The size or the alternatives that the training had.", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputStatus(Table):
    """The use of the time since the creation of the HyperJob."""

    ratio: str | None = described(
        "Productive time divided by all time that was not suspended, at the last"
        " change of this status: a decimal number from 0 to 1.",
        default=None,
    )
    state: TimeUse | None = described(
        "The use of the time after `since`; unset after the end.", default=None
    )
    since: str = described(
        "Start of the present use; the time before it is counted in milliseconds.", TIME, default=""
    )
    share: str | None = described(
        "Share of the sub-jobs that train while the state is degraded: this share of"
        " the time is productive. A decimal number from 0 to 1.",
        default=None,
    )
    milliseconds: Mapping[str, int] = described(
        "Milliseconds up to `since` by use: waitingForQueue, waitingForCapacity,"
        " blocked, starting, productive, stalled, degraded, lostToFailures, lostToPlannedStops,"
        " suspended, finishing.",
        NATURALS,
        default={},
    )
    productive: Mapping[str, int] = described(
        "Productive milliseconds up to `since` by the size or the alternatives that the training"
        " had, such as `trainer=4`.",
        NATURALS,
        default={},
    )
    stopped: StoppedTraining | None = described(
        "The last stop, until the program reports where it resumed, which corrects the lost time.",
        default=None,
    )
