"""An axis of time: the position of a time, and the labelled times. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

ROUND_SECONDS: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000),
)
"""Distances of labels on an axis of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A time on the axis, at `at` percent."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The time between `begin` and `end`, which is later."""

    begin: datetime
    end: datetime

    def at(self, moment: datetime) -> float:
        """Return the position of a time in percent."""
        whole = (self.end - self.begin).total_seconds()
        part = (moment - self.begin).total_seconds() / whole
        return round(100 * min(max(part, 0.0), 1.0), 3)


def ticks_of(scale: TimeScale) -> list[Tick]:
    """Return at most nine round times; at most 16 where the axis is longer than eight years."""
    whole = (scale.end - scale.begin).total_seconds()
    seconds = next((each for each in ROUND_SECONDS if whole / each <= 8), ROUND_SECONDS[-1])
    step = timedelta(seconds=seconds)
    first = datetime.fromtimestamp(-(-scale.begin.timestamp() // seconds) * seconds, UTC)
    form = "%m-%d" if step >= timedelta(days=1) else "%H:%M"
    form = "%H:%M:%S" if step < timedelta(minutes=1) else form
    found: list[Tick] = []
    moment = first
    while moment <= scale.end and len(found) < 16:
        found.append(Tick(at=scale.at(moment), text=moment.strftime(form)))
        moment += step
    return found
