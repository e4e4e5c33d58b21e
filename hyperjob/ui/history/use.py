"""Use over time, as it was at the end of each of a fixed number of slots of time. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

SLOTS: Final = 120
UNCHANGED: Final = timedelta(minutes=10)
"""How often a use that stays the same is written."""
_HELD: Final = UNCHANGED + timedelta(minutes=3)
"""How long a sample is good for when no other follows: then nothing was recorded."""

Point: TypeAlias = tuple[int, int] | None
"""Accelerators used, and of how many; None while nothing was recorded."""


@dataclass(frozen=True, slots=True)
class Series:
    """The use of one accelerator of a cluster or a queue, `name`: SLOTS points."""

    name: str
    accelerator: str
    points: Sequence[Point]


def with_lead(since: datetime, until: datetime) -> tuple[datetime, int]:
    """Return where to begin reading so that a sample before `since` is known, and the slots."""
    width = (until - since) / SLOTS
    lead = -(-_HELD // width)
    return since - lead * width, SLOTS + lead


def series(rows: Iterable[tuple[str, str, int, int, int]], slots: int) -> list[Series]:
    """Put the last sample of each slot in order; `rows` are as `Store.use` gives them.

    `slots` counts those before the time that is asked for too; of those, only the use that went on
    is kept.
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
    """Add up series, point by point."""
    result: list[Point] = [None] * SLOTS
    for one in found:
        for slot, point in enumerate(one.points):
            before = result[slot] or (0, 0)
            if point is not None:
                result[slot] = before[0] + point[0], before[1] + point[1]
    return result


def _held(by_slot: dict[int, tuple[int, int]], slots: int, longest: int) -> list[Point]:
    """Let a sample go on until the next one, for at most `longest` slots after its own."""
    result: list[Point] = []
    last = -slots
    for slot in range(slots):
        if slot in by_slot:
            last = slot
        result.append(by_slot[last] if slot - last <= longest and last in by_slot else None)
    return result
