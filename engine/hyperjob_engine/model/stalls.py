"""A program that makes no steps against its own pace, and the process for which others wait. Pure.

One read never decides. The reader looks twice, and the record in the status stays until the
program makes a step, or its sub-job starts again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from hyperjob_core.api.training import Straggler
from hyperjob_engine.reasons.stacks import Pod, Survey

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
    patience: timedelta
    usual: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """All stalls of a HyperJob by sub-job, and what its processes do; None: not read yet."""

    stalls: Mapping[str, Stall] = field(default_factory=dict)
    survey: Survey | None = None


LEAST: Final = 0.2
"""The part of the time that the others must wait longer than the slow one."""


@dataclass(frozen=True, slots=True)
class WaitShare:
    """The part of its time, from 0 to 1, that a process waits for others; None: its pod's first."""

    pod: Pod
    part: float
    rank: int | None = None


def straggler(waits: Sequence[WaitShare], *, steps_per_second: float | None) -> Straggler | None:
    """Return the process for which the others wait; None where no single one is slow."""
    if len(waits) < 2:
        return None
    least, *others = sorted(waits, key=lambda each: (each.part, each.pod.cluster, each.pod.name))
    part = median(each.part for each in others) - least.part
    if part < LEAST or others[0].part - least.part < part / 2:
        return None
    seconds = part / steps_per_second if steps_per_second else None
    return Straggler(
        cluster=least.pod.cluster,
        pod=least.pod.name,
        job=least.pod.job,
        rank=least.rank,
        part=f"{part:.2f}",
        seconds="" if seconds is None else f"{seconds:.3g}",
    )
