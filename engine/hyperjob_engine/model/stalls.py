"""A program that makes no steps against its own pace: what the reader of logs found. Pure.

One read never decides. The reader looks twice, and the record in the status stays until the
program makes a step, or its sub-job starts again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.microtime import micro_time
from hyperjob_core.api.wire import count, mapping, objects, string, strings, timestamp
from hyperjob_engine.reasons.stacks import Pod, Survey

_SUSPECTS: Final = 16
LEAST_RESTART: Final = timedelta(minutes=2)
"""A restart waits so long, or three times the patience, since the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A sub-job whose program makes no steps, in two reads of its log.

    `since` is the time of its last step, `patience` how long a pause of it may last, `usual` the
    usual time between two of its lines; None: it has printed fewer than three.
    """

    since: datetime
    step: int
    attempt: int
    uid: str
    patience: timedelta
    usual: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """All stalls of a HyperJob by sub-job, and what its processes do; None: not read yet."""

    stalls: Mapping[str, Stall] = field(default_factory=dict)
    survey: Survey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StallRecord:
    """`status.stall`: the sub-jobs that make no steps, since when, and the pods they wait for.

    `whole`: every sub-job that reports has stalled. With `restart_time` the controller restarts
    them then, unless a program makes a step.
    """

    since: datetime
    step: int
    jobs: tuple[str, ...]
    whole: bool
    message: str
    suspects: tuple[Pod, ...] = ()
    restart_time: datetime | None = None

    def to_object(self) -> Object:
        """Return the field of the status."""
        entry: Object = {
            "since": micro_time(self.since),
            "step": self.step,
            "jobs": list(self.jobs),
            "whole": self.whole,
            "message": self.message,
            "suspects": [
                {"cluster": each.cluster, "pod": each.name, "job": each.job}
                for each in self.suspects[:_SUSPECTS]
            ],
        }
        if self.restart_time is not None:
            entry["restartTime"] = micro_time(self.restart_time)
        return {key: value for key, value in entry.items() if value not in ([], "")}


def parse_stall(raw: object) -> StallRecord | None:
    """Parse `status.stall`; None if there is none."""
    fields = mapping(raw)
    since = timestamp(fields.get("since"))
    if since is None:
        return None
    return StallRecord(
        since=since,
        step=count(fields.get("step")),
        jobs=strings(fields.get("jobs")),
        whole=fields.get("whole") is True,
        message=string(fields.get("message")),
        suspects=tuple(
            Pod(string(each.get("cluster")), string(each.get("pod")), string(each.get("job")))
            for each in objects(fields.get("suspects"))
        ),
        restart_time=timestamp(fields.get("restartTime")),
    )
