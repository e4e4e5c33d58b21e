"""Use over time: the mean of each slot of a fixed number of slots. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, TypeAlias

SLOTS: Final = 120
UNCHANGED: Final = timedelta(minutes=10)
"""Interval of samples while the use does not change."""
HELD: Final = UNCHANGED + timedelta(minutes=3)
"""Time after a sample without another sample after which the use is unknown."""

Point: TypeAlias = tuple[float, float] | None
"""Used and total accelerators, on average over a slot; None for a time without samples."""

UsedSample: TypeAlias = tuple[str, str, float, int, int]
"""Name, accelerator, time in seconds since 1970, used and total."""


@dataclass(frozen=True, slots=True)
class Series:
    """The use of one accelerator of a cluster or a queue, `name`: SLOTS points.

    `now` is the last sample, if it still counts. `spent` are the used and the offered accelerators
    times the seconds in which they are known.
    """

    name: str
    accelerator: str
    points: Sequence[Point]
    now: tuple[int, int] = (0, 0)
    spent: tuple[float, float] = (0.0, 0.0)


def series(rows: Iterable[UsedSample], since: datetime, until: datetime) -> list[Series]:
    """Return the series between two times from samples by name, accelerator and time.

    The samples begin HELD before `since`: the last one before `since` counts from there on.
    """
    times = since.timestamp(), until.timestamp()
    return [
        _integrated(name, accelerator, [row[2:] for row in samples], *times)
        for (name, accelerator), samples in groupby(rows, key=lambda row: row[:2])
    ]


def together(name: str, accelerator: str, found: Sequence[Series]) -> Series:
    """Return the sum of series, point by point."""
    points: list[Point] = [None] * SLOTS
    for one in found:
        for slot, point in enumerate(one.points):
            before = points[slot] or (0, 0)
            if point is not None:
                points[slot] = before[0] + point[0], before[1] + point[1]
    return Series(
        name,
        accelerator,
        points,
        now=(sum(one.now[0] for one in found), sum(one.now[1] for one in found)),
        spent=(sum(one.spent[0] for one in found), sum(one.spent[1] for one in found)),
    )


@dataclass(slots=True)
class _Slots:
    """Seconds of known use, and used and offered accelerators times seconds, by slot."""

    known: list[float] = field(default_factory=lambda: [0.0] * SLOTS)
    used: list[float] = field(default_factory=lambda: [0.0] * SLOTS)
    total: list[float] = field(default_factory=lambda: [0.0] * SLOTS)


def _integrated(
    name: str,
    accelerator: str,
    samples: Sequence[tuple[float, int, int]],
    since: float,
    until: float,
) -> Series:
    """Return the series of the samples of one accelerator: their means over each slot of time."""
    slots, width = _Slots(), (until - since) / SLOTS
    for begin, end, used, total in _lasting(samples, since, until):
        place = min(int((begin - since) / width), SLOTS - 1)
        while begin < end:
            after = since + (place + 1) * width if place < SLOTS - 1 else end
            seconds = min(end, after) - begin
            if seconds > 0:
                slots.known[place] += seconds
                slots.used[place] += used * seconds
                slots.total[place] += total * seconds
            begin, place = max(begin, after), place + 1
    at, used, total = samples[-1]
    return Series(
        name,
        accelerator,
        [
            (slots.used[n] / seconds, slots.total[n] / seconds) if seconds > 0 else None
            for n, seconds in enumerate(slots.known)
        ],
        now=(used, total) if until - at <= HELD.total_seconds() else (0, 0),
        spent=(sum(slots.used), sum(slots.total)),
    )


def _lasting(
    samples: Sequence[tuple[float, int, int]], since: float, until: float
) -> Iterator[tuple[float, float, int, int]]:
    """Yield begin, end, used and total: a sample lasts until the next, for HELD at most."""
    following = [*(sample[0] for sample in samples[1:]), until]
    for (at, used, total), end in zip(samples, following, strict=True):
        yield max(at, since), min(end, at + HELD.total_seconds(), until), used, total
