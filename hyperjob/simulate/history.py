"""What a simulation has seen: the life of every job, and how full clusters and queues were.

Only notes; `hyperjob.simulate.measure` works out what it means.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperjob.simulate.workload import Submission


@dataclass(slots=True)
class Segment:
    """A time in which a job ran on some clusters, in seconds; `devices` by cluster."""

    begin: float
    end: float
    devices: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the first status with a time said: when it was written, and the expected start."""

    told: float
    start: float


@dataclass(slots=True)
class Life:
    """What became of one job; times in seconds since the start of the simulation.

    `stops` counts by cause how often it was stopped, `lost` the accelerator-seconds of work that
    were done again, `message` is what its status said last.
    """

    job: Submission
    ready: float | None = None
    started: float | None = None
    ended: float | None = None
    outcome: str = ""
    segments: list[Segment] = field(default_factory=list)
    stops: dict[str, int] = field(default_factory=dict)
    lost: float = 0.0
    forecast: Forecast | None = None
    message: str = ""

    @property
    def waited(self) -> float | None:
        """Return the time from its creation to its first start."""
        return None if self.started is None else self.started - self.job.arrival


@dataclass(slots=True)
class Steps:
    """An amount over time that changes in steps."""

    times: list[float] = field(default_factory=lambda: [0.0])
    values: list[float] = field(default_factory=lambda: [0.0])

    def add(self, time: float, change: float) -> None:
        """Change it at a time not before the last one."""
        self.set(time, self.values[-1] + change)

    def set(self, time: float, value: float) -> None:
        """Set it at a time not before the last one."""
        if value == self.values[-1]:
            return
        if time == self.times[-1]:
            self.values[-1] = value
            return
        self.times.append(time)
        self.values.append(value)

    def integral_while(self, other: "Steps", end: float) -> float:
        """Return amount times seconds of the time from 0 to `end` in which `other` is positive."""
        found, place, there = 0.0, 0, 0
        time = 0.0
        while time < end:
            after = min(self.until_of(place), other.until_of(there), end)
            if other.values[there] > 0:
                found += (after - time) * self.values[place]
            place += after == self.until_of(place)
            there += after == other.until_of(there)
            time = after
        return found

    def until_of(self, position: int) -> float:
        """Return when the next step comes after one."""
        return self.times[position + 1] if position + 1 < len(self.times) else math.inf

    def integral(self, begin: float, end: float) -> float:
        """Return amount times seconds between two times."""
        found = 0.0
        for position, start in enumerate(self.times):
            after = self.times[position + 1] if position + 1 < len(self.times) else end
            low, high = max(start, begin), min(after, end)
            if high > low:
                found += (high - low) * self.values[position]
        return found

    def averages(self, end: float, parts: int) -> list[float]:
        """Return the mean in each of so many equal parts of the time from 0 to `end`."""
        sums = [0.0] * parts
        width = end / parts
        for position, start in enumerate(self.times):
            after = self.times[position + 1] if position + 1 < len(self.times) else end
            low, value = start, self.values[position]
            high = min(after, end)
            while value and low < high:
                part = min(int(low / width), parts - 1)
                edge = high if part == parts - 1 else min(high, (part + 1) * width)
                if edge <= low:
                    break
                sums[part] += (edge - low) * value
                low = edge
        return [each / width for each in sums]


@dataclass(slots=True)
class History:
    """Everything that one simulation has noted."""

    sizes: Mapping[str, int]
    lives: dict[str, Life] = field(default_factory=dict)
    used: dict[str, Steps] = field(default_factory=dict)  # accelerators by cluster
    queues: dict[str, Steps] = field(default_factory=dict)  # accelerators by queue
    asked: dict[str, Steps] = field(default_factory=dict)  # accelerators that wait, by queue
    splinters: Steps = field(default_factory=Steps)  # free on nodes that are used in part
    free: Steps = field(default_factory=Steps)  # accelerators of nodes that work, not in use
    end: float = 0.0
