"""The progress of a training and its goodput, as values and as text. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, integer, mapping, string, string_map, timestamp
from hyperjob_core.text import human_duration
from hyperjob_engine.model.training import web_address
from hyperjob_engine.status.goodput import certain_until, parse_account, ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The pod for which the others wait: which part of their time, and the seconds of each step."""

    cluster: str
    pod: str
    part: float
    seconds: float | None = None
    rank: int | None = None

    def words(self) -> str:
        """Return it in words."""
        each = f", {self.seconds:g} s of each step" if self.seconds else ""
        rank = "" if self.rank is None else f"rank {self.rank} in "
        where = f"{rank}pod {self.pod} in {self.cluster}"
        return f"the others wait for {where} {self.part:.0%} of the time{each}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The progress of a training as its program last reported it.

    `progress` is the percentage of the steps, or the step where the number of steps is unknown;
    `saved` is the time of the checkpoint at `saved_step`, `updated` the time of `step`. `phase` is
    what the program has announced to do instead of steps. `usual_steps_per_second` is only set
    while the training makes less than half of it.
    """

    step: int
    steps: int | None = None
    percent: int | None = None
    progress: str = ""
    steps_per_second: float | None = None
    usual_steps_per_second: float | None = None
    completion: datetime | None = None
    start_step: int = 0
    saved_step: int | None = None
    saved: datetime | None = None
    updated: datetime | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    phase: str = ""
    url: str = ""
    straggler: Straggler | None = None

    def words(self, now: datetime) -> str:
        """Say it in one line."""
        parts = [f"step {self.step}" + (f" of {self.steps}" if self.steps else "")]
        if self.percent is not None:
            parts.insert(0, f"{self.percent}%")
        if self.steps_per_second:
            usual = self.usual_steps_per_second
            before = f" ({usual:g} usually)" if usual else ""
            parts.append(f"{self.steps_per_second:g} steps/s{before}")
        if self.completion is not None and self.completion > now:
            left = (self.completion - now).total_seconds()
            parts.append(f"done in {human_duration(left)}")
        if self.saved_step is not None and self.saved is not None:
            parts.append(f"saved step {self.saved_step}, made {_ago(self.saved, now)}")
        if self.updated is not None:
            parts.append(f"reported {_ago(self.updated, now)}")
        if self.phase:
            parts.append(f"in phase {self.phase}")
        if self.url:
            parts.append(f"at {self.url}")
        if self.straggler is not None:
            parts.append(self.straggler.words())
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The time of a HyperJob by use, in seconds, and the productive share of it.

    While the program makes steps, `seconds` ends with its last progress line: what it does since
    then is known later. `unreported` are the seconds since that line.
    """

    ratio: float
    seconds: Mapping[TimeUse, float]
    unreported: float = 0.0

    def words(self) -> str:
        """Say it in one line."""
        spent = ", ".join(
            f"{_WORDS[use]} {human_duration(seconds)}"
            for use, seconds in self.seconds.items()
            if seconds >= 1
        )
        if self.unreported >= 1:
            spent += f", not reported yet {human_duration(self.unreported)}"
        return f"{self.percent} ({spent.removeprefix(', ')})" if spent else self.percent

    @property
    def percent(self) -> str:
        """Return the productive share as a percentage."""
        return f"{100 * self.ratio:.0f}%"


_WORDS = {
    TimeUse.WAITING_FOR_QUEUE: "waiting for queue",
    TimeUse.WAITING_FOR_CAPACITY: "waiting for capacity",
    TimeUse.BLOCKED: "blocked",
    TimeUse.STARTING: "starting",
    TimeUse.PRODUCTIVE: "productive",
    TimeUse.STALLED: "stalled",
    TimeUse.DEGRADED: "degraded",
    TimeUse.LOST_TO_FAILURES: "lost to failures",
    TimeUse.LOST_TO_PLANNED_STOPS: "lost to planned stops",
    TimeUse.SUSPENDED: "suspended",
    TimeUse.FINISHING: "finishing",
}


def training_of(raw: Object) -> Training | None:
    """Parse `status.training`; None where no program has reported progress."""
    if not raw:
        return None
    return Training(
        step=count(raw.get("step")),
        steps=integer(raw.get("steps")),
        percent=integer(raw.get("percent")),
        progress=string(raw.get("progress")),
        steps_per_second=_float(raw.get("stepsPerSecond")),
        usual_steps_per_second=_float(raw.get("usualStepsPerSecond")),
        completion=timestamp(raw.get("estimatedCompletionTime")),
        start_step=count(raw.get("startStep")),
        saved_step=integer(raw.get("savedStep")),
        saved=timestamp(raw.get("savedTime")),
        updated=timestamp(raw.get("updateTime")),
        metrics={
            name: number
            for name, text in string_map(raw.get("metrics")).items()
            if (number := _float(text)) is not None
        },
        phase=string(raw.get("phase")),
        url=web_address(raw.get("url")),
        straggler=_straggler(mapping(raw.get("straggler"))),
    )


def _straggler(raw: Object) -> Straggler | None:
    part = _float(raw.get("part"))
    if part is None:
        return None
    return Straggler(
        cluster=string(raw.get("cluster")),
        pod=string(raw.get("pod")),
        part=part,
        seconds=_float(raw.get("seconds")),
        rank=integer(raw.get("rank")),
    )


def goodput_of(raw: Object, training: Training | None, now: datetime) -> Goodput | None:
    """Parse `status.goodput`, and add the time since its last update of which the use is known.

    That is the time up to `now`, but while steps are made the time up to the last progress line:
    a program that hangs does so before anyone sees it. In an announced phase no line is expected.
    """
    account = parse_account(raw)
    if account is None:
        return None
    steps = training is not None and not training.phase
    end = certain_until(account, training.updated if training and steps else None, now)
    spent = account.until(end).spent
    seconds = {use: spent[use] / 1000 for use in TimeUse if spent.get(use)}
    unreported = (now - end).total_seconds()
    return Goodput(ratio=ratio(account, end), seconds=seconds, unreported=unreported)


def _ago(moment: datetime, now: datetime) -> str:
    return f"{human_duration(max(0.0, (now - moment).total_seconds()))} ago"


def _float(value: object) -> float | None:
    try:
        return float(string(value))
    except ValueError:
        return None
