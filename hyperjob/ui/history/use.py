"""Use over time, as the use at the end of each slot of a fixed number of slots. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

SLOTS: Final = 120
UNCHANGED: Final = timedelta(minutes=10)
"""Interval of samples while the use does not change."""
_HELD: Final = UNCHANGED + timedelta(minutes=3)
"""Time after a sample without another sample after which the use is unknown."""

Point: TypeAlias = tuple[int, int] | None
"""Used and total accelerators; None for a time without samples."""


@dataclass(frozen=True, slots=True)
class Series:
    """The use of one accelerator of a cluster or a queue, `name`: SLOTS points."""

    name: str
    accelerator: str
    points: Sequence[Point]


def with_lead(since: datetime, until: datetime) -> tuple[datetime, int]:
    """Return a time before `since` at which to begin reading, and the number of slots."""
    width = (until - since) / SLOTS
    lead = -(-_HELD // width)
    return since - lead * width, SLOTS + lead


def series(rows: Iterable[tuple[str, str, int, int, int]], slots: int) -> list[Series]:
    """Return the series of the samples; `rows` are the result of `Store.use`.

    `slots` includes the slots before the requested time, of which the result uses only the last
    sample.
    """
    found: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for name, accelerator, slot, used, total in rows:
        found.setdefault((name, accelerator), {})[slot] = used, total
    lead = slots - SLOTS
    return [
        Series(name, accelerator, _held(by_slot, slots, max(lead, 1))[lead:])
        for (name, accelerator), by_slot in sorted(found.items())
    ]


def summed(found: Iterable[Series]) -> list[Point]:
    """Return the sum of series, point by point."""
    result: list[Point] = [None] * SLOTS
    for one in found:
        for slot, point in enumerate(one.points):
            before = result[slot] or (0, 0)
            if point is not None:
                result[slot] = before[0] + point[0], before[1] + point[1]
    return result


def _held(by_slot: dict[int, tuple[int, int]], slots: int, longest: int) -> list[Point]:
    """Return the points; each sample lasts until the next, for at most `longest` slots."""
    result: list[Point] = []
    last = -slots
    for slot in range(slots):
        if slot in by_slot:
            last = slot
        result.append(by_slot[last] if slot - last <= longest and last in by_slot else None)
    return result
