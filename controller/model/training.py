"""What the program of a sub-job said of its training, as read from its log or from the status.

Never trusts a clock of a member further than the controller's own: its maker has bounded
its times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from controller.model.wire import count, integer, mapping, string, timestamp
from hyperjob.api.meta import Object
from hyperjob.kube.microtime import micro_time


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTraining:
    """The progress of one sub-job.

    `updated` is when `step` was reported, `started` when the first step since the program last
    started was, `saved` when `saved_step` was made. `steps`, `steps_per_second` and `metrics` are
    known of a log alone. `ended`: the log of a sub-job that is being stopped was read to its end.
    Without `said` there is no progress line in it.
    """

    step: int
    updated: datetime
    start_step: int
    started: datetime
    saved_step: int | None = None
    saved: datetime | None = None
    attempt: int = 0
    uid: str = ""
    steps: int | None = None
    steps_per_second: float | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    ended: bool = False
    said: bool = True

    @property
    def kept_until(self) -> datetime:
        """Return until when its work would be kept if it stopped now."""
        return self.started if self.saved is None else self.saved

    def reached(self, step: int) -> datetime:
        """Return when a step was made, or would be at the speed since the start; never before that.

        The speed between the start, the checkpoint and the last line is taken as even.
        """
        points = [(self.start_step, self.started)]
        if self.saved_step is not None and self.saved is not None:
            points.append((self.saved_step, self.saved))
        points.append((self.step, self.updated))
        for before, after in pairwise(points):
            if before[0] < after[0] and step <= after[0]:
                return _between(before, after, step)
        first, last = points[0], points[-1]
        if first[0] < last[0] < step:
            return _between(first, last, step)
        return first[1] if step <= first[0] else last[1]


def _between(first: tuple[int, datetime], last: tuple[int, datetime], step: int) -> datetime:
    """Give the moment of a step on the line through two moments, at the earliest the first."""
    part = max(0.0, (step - first[0]) / (last[0] - first[0]))
    # A step far beyond the last line is as good as the end of time.
    return first[1] + (last[1] - first[1]) * min(part, 1000.0)


def parse_training(raw: object) -> JobTraining | None:
    """Read what a status says of a training; None where it says nothing that can be used."""
    said = mapping(raw)
    updated, started = timestamp(said.get("updateTime")), timestamp(said.get("startTime"))
    if updated is None or started is None:
        return None
    saved_step, saved = integer(said.get("savedStep")), timestamp(said.get("savedTime"))
    return JobTraining(
        step=count(said.get("step")),
        updated=updated,
        start_step=count(said.get("startStep")),
        started=started,
        saved_step=saved_step if saved is not None else None,
        saved=saved if saved_step is not None else None,
        attempt=count(said.get("attempt")),
        uid=string(said.get("uid")),
    )


def training_object(training: JobTraining) -> Object:
    """Return the fields that a sub-job's entry and the whole status share."""
    entry: Object = {
        "step": training.step,
        "updateTime": micro_time(training.updated),
        "startStep": training.start_step,
        "startTime": micro_time(training.started),
    }
    if training.saved_step is not None and training.saved is not None:
        entry |= {"savedStep": training.saved_step, "savedTime": micro_time(training.saved)}
    return entry


def known(read: JobTraining | None, recorded: JobTraining | None) -> JobTraining | None:
    """Return the newest that is known: what was read, with the checkpoint recorded before it.

    A program that resumed and has not saved again yet would resume at the same checkpoint.
    """
    if read is None or not read.said or recorded is None:
        return recorded or read
    if read.attempt < recorded.attempt:
        return recorded
    before = recorded.saved_step
    # A program that began below its own checkpoint did not read it.
    if read.saved_step is None and before is not None and before <= read.start_step:
        return replace(read, saved_step=before, saved=read.started)
    return read
