"""The record of a simulation: the runs of every job, and the use of clusters and queues.

`hyperjob_sandbox.simulate.measure` computes a report from the record.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperjob_sandbox.simulate.workload import Submission


@dataclass(slots=True)
class Segment:
    """A span of time, in seconds, in which a job ran; `devices` by cluster."""

    begin: float
    end: float
    devices: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StartForecast:
    """The first expected start in a status, and the time at which it was written."""

    told: float
    start: float


@dataclass(slots=True)
class Life:
    """The record of a job; times in seconds since the start of the simulation.

    `stops` counts its stops by cause: a failed pod, node or cluster, also where the controller then
    deleted the other sub-jobs, or preempted for any other deletion. `lost` are the
    accelerator-seconds of repeated work, `message` is the last message of its status.
    """

    job: Submission
    ready: float | None = None
    started: float | None = None
    ended: float | None = None
    outcome: str = ""
    segments: list[Segment] = field(default_factory=list)
    stops: dict[str, int] = field(default_factory=dict)
    lost: float = 0.0
    forecast: StartForecast | None = None
    message: str = ""

    @property
    def waited(self) -> float | None:
        """Return the seconds from the job's creation to its first start; None before it."""
        return None if self.started is None else self.started - self.job.arrival


@dataclass(slots=True)
class Steps:
    """A step function of time."""

    times: list[float] = field(default_factory=lambda: [0.0])
    values: list[float] = field(default_factory=lambda: [0.0])

    def add(self, time: float, change: float) -> None:
        """Add `change` to the amount at a time not before the last step."""
        self.set(time, self.values[-1] + change)

    def set(self, time: float, value: float) -> None:
        """Set the amount at a time not before the last step."""
        if value == self.values[-1]:
            return
        if time == self.times[-1]:
            self.values[-1] = value
            return
        self.times.append(time)
        self.values.append(value)

    def integral_while(self, other: "Steps", end: float) -> float:
        """Return the integral from 0 to `end` over the times in which `other` is positive."""
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
        """Return the time of the step after the step at `position`; infinity after the last one."""
        return self.times[position + 1] if position + 1 < len(self.times) else math.inf

    def integral(self, end: float) -> float:
        """Return the integral from 0 to `end`."""
        return sum(
            max(0.0, min(self.until_of(position), end) - start) * self.values[position]
            for position, start in enumerate(self.times)
        )

    def averages(self, end: float, parts: int) -> list[float]:
        """Return the means of equal parts of the time from 0 to `end`."""
        sums, position, low = [0.0] * parts, 0, 0.0
        for part in range(parts):
            edge = end * (part + 1) / parts
            while low < edge:
                high = min(self.until_of(position), edge)
                sums[part] += (high - low) * self.values[position]
                position += high == self.until_of(position)
                low = high
        return [each * parts / end for each in sums]


@dataclass(slots=True)
class History:
    """All records of a simulation.

    `end` is the time of the last end, or of a standstill: no `Life.ended` is later. The series and
    the waits of jobs that never started are measured against it.
    """

    sizes: Mapping[str, int]
    lives: dict[str, Life] = field(default_factory=dict)
    used: dict[str, Steps] = field(default_factory=dict)  # accelerators by cluster
    queues: dict[str, Steps] = field(default_factory=dict)  # accelerators by queue
    asked: dict[str, Steps] = field(default_factory=dict)  # accelerators of waiting jobs, by queue
    splinters: Steps = field(default_factory=Steps)  # free accelerators on nodes in partial use
    free: Steps = field(default_factory=Steps)  # free accelerators of all working nodes
    end: float = 0.0
