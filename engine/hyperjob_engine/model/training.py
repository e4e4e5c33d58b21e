"""The training progress of a sub-job, as read from its pod's log or from the status.

Times are never later than the controller's own clock: the reader of the log bounds them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from hyperjob_core.api.meta import Object
from hyperjob_core.api.microtime import micro_time
from hyperjob_core.api.wire import count, integer, mapping, string, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTraining:
    """The progress of one sub-job.

    `updated` is when the program reported `step`, `started` when it reported its first step since
    its last start, `saved` when it saved the checkpoint of `saved_step`. Only a log has `steps`,
    `steps_per_second` and `metrics`. `ended`: the controller has read the log of a stopping
    sub-job to its end. `reported` is false if the log has no progress line.
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
    reported: bool = True

    @property
    def kept_until(self) -> datetime:
        """Return the time up to which the work would be kept if the sub-job stopped now."""
        return self.started if self.saved is None else self.saved

    def reached(self, step: int) -> datetime:
        """Return when the program made a step, or will make it; at the earliest `started`.

        The estimate assumes a constant speed between start, checkpoint and last progress line,
        and the average speed after that.
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
    """Return the time of a step by linear interpolation of two; at the earliest the first."""
    part = max(0.0, (step - first[0]) / (last[0] - first[0]))
    # The bound keeps the result of a far step in the range of datetime.
    return first[1] + (last[1] - first[1]) * min(part, 1000.0)


def parse_training(raw: object) -> JobTraining | None:
    """Parse the training of a status or of a sub-job's entry; None if it is unusable."""
    fields = mapping(raw)
    updated, started = timestamp(fields.get("updateTime")), timestamp(fields.get("startTime"))
    if updated is None or started is None:
        return None
    saved_step, saved = integer(fields.get("savedStep")), timestamp(fields.get("savedTime"))
    return JobTraining(
        step=count(fields.get("step")),
        updated=updated,
        start_step=count(fields.get("startStep")),
        started=started,
        saved_step=saved_step if saved is not None else None,
        saved=saved if saved_step is not None else None,
        attempt=count(fields.get("attempt")),
        uid=string(fields.get("uid")),
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
    """Return the progress that was read, else the recorded one.

    Progress without a checkpoint keeps the recorded checkpoint: a program that resumed and has not
    saved again would resume from it once more.
    """
    if read is None or not read.reported or recorded is None:
        return recorded or read
    if read.attempt < recorded.attempt:
        return recorded
    before = recorded.saved_step
    # A program that started at a step before the checkpoint did not resume from it.
    if read.saved_step is None and before is not None and before <= read.start_step:
        return replace(read, saved_step=before, saved=read.started)
    return read
