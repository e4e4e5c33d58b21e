"""Generate a workload from a seed, with arrivals, sizes and durations like public traces.

Sizes follow a table of shares, durations a log-normal distribution in which a few jobs are most of
the work, and arrivals the hours of the day. Equal seeds give equal jobs.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field

from hyperjob_sandbox.simulate.jobs import JobNumbers
from hyperjob_sandbox.simulate.workload import ScenarioPart, WorkloadError

_DAY: Final = 86400.0
_LONGEST: Final = 7 * _DAY
_LONGEST_PART: Final = (
    0.25  # share of the time of arrivals: longer jobs would run mostly after the arrivals
)
_ALIKE: Final = 0.9  # share of the variance of durations that runs of one template have in common
_NIGHT: Final = 0.4  # arrivals at midnight relative to noon


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """Shares of sizes in accelerators, and the spread of durations: sigma of their logarithms."""

    sizes: Mapping[int, float]
    sigma: float


SHAPES: Final[Mapping[str, JobShape]] = {
    # Most jobs have one accelerator and the mean is below 2 (Jeon and others, ATC 2019).
    "philly": JobShape(sizes={1: 0.8, 2: 0.07, 4: 0.06, 8: 0.05, 16: 0.02}, sigma=2.3),
    # More than half have one accelerator and the mean is near 4 (Hu and others, SC 2021).
    "helios": JobShape(
        sizes={1: 0.55, 2: 0.12, 4: 0.11, 8: 0.16, 16: 0.035, 32: 0.02, 64: 0.004, 128: 0.001},
        sigma=2.3,
    ),
    # Pretraining beside fine-tuning: whole nodes, and jobs larger than a cluster.
    "llm": JobShape(
        sizes={8: 0.46, 16: 0.2, 32: 0.14, 64: 0.1, 128: 0.06, 256: 0.03, 512: 0.01}, sigma=1.4
    ),
}


class Estimates(ScenarioPart):
    """The share of generated jobs with a runningEstimate, and the largest factor of its error."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    error: Annotated[float, Field(ge=1, le=100)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The demand of a workload on a number of accelerators.

    The generator scales durations until the work of all jobs is `load` times the capacity in
    `days`.
    """

    jobs: int
    days: float
    load: float
    shape: str = "helios"
    queues: Mapping[str, float] = field(default_factory=lambda: {"default": 1.0})
    urgent: float = 0.0
    """Share of jobs with the PriorityClass `urgent`."""
    estimates: Estimates = field(default_factory=Estimates)
    recurring: float = 0.0
    """Share of jobs that run the template of an earlier one of their size again."""
    elastic: float = 0.0
    """Share of jobs that take any number of sub-jobs between a quarter and four times their own."""


def generate(demand: Demand, *, accelerators: int, largest: int, seed: int) -> list[JobNumbers]:
    """Return jobs of at most `largest` accelerators.

    Raises WorkloadError where the jobs cannot reach `demand.load`: a job runs for at least a
    second, and at most for a week and a quarter of `demand.days`.
    """
    draw = random.Random(f"hyperjob {seed}")
    shape = SHAPES[demand.shape]
    sizes = {size: share for size, share in shape.sizes.items() if size <= largest} or {1: 1.0}
    chosen = draw.choices(list(sizes), list(sizes.values()), k=demand.jobs)
    raw = [draw.lognormvariate(0.0, shape.sigma) for _ in chosen]
    templates = _templates(random.Random(f"templates {seed}"), chosen, demand.recurring)
    raw = [_of_template(raw[own], raw[first]) for own, first in enumerate(templates)]
    longest = min(_LONGEST, _LONGEST_PART * demand.days * _DAY)
    whole = accelerators * demand.days * _DAY
    _check_load(demand, whole=whole, asked=sum(chosen), longest=longest)
    durations = _scaled(raw, chosen, demand.load * whole, longest)
    arrivals = sorted(_arrival(draw, demand.days) for _ in chosen)
    digits, any_size = len(str(demand.jobs)), random.Random(f"elastic {seed}")
    names, shares = list(demand.queues), list(demand.queues.values())
    return [
        JobNumbers(
            name=f"job-{number:0{digits}d}",
            arrival=round(arrival, 3),
            duration=round(duration, 3),
            gpus=gpus,
            template=f"t{template}",
            queue=draw.choices(names, shares)[0],
            priority="urgent" if draw.random() < demand.urgent else "",
            estimate=_estimate(draw, duration, demand.estimates),
            elastic=any_size.random() < demand.elastic,
        )
        for number, (arrival, duration, gpus, template) in enumerate(
            zip(arrivals, durations, chosen, templates, strict=True), start=1
        )
    ]


def _templates(draw: random.Random, sizes: Sequence[int], recurring: float) -> list[int]:
    """Return the first job of the template of each; what ran more often runs again more often."""
    runs: dict[int, list[int]] = {}
    for number, size in enumerate(sizes):
        earlier = runs.setdefault(size, [])
        again = bool(earlier) and draw.random() < recurring
        earlier.append(draw.choice(earlier) if again else number)
    return [runs[size].pop(0) for size in sizes]


def _of_template(own: float, first: float) -> float:
    """Return the duration of a run, near that of the first one of its template."""
    return own if own == first else first**_ALIKE**0.5 * own ** (1 - _ALIKE) ** 0.5


def _check_load(demand: Demand, *, whole: float, asked: int, longest: float) -> None:
    """Raise WorkloadError unless the jobs can be work of `load` times the `whole`."""
    most, least = asked * longest / whole, asked / whole
    enough = 4 * math.ceil(demand.jobs * demand.load / most)
    jobs = f"{demand.jobs} jobs of the shape {demand.shape} with {asked} accelerators"
    if demand.load > most:
        raise WorkloadError(
            f"{jobs} are a load of at most {_two(most)}, since none runs longer than"
            f" {longest / 3600:.0f} hours: ask for about {enough} jobs, a lower load or another"
            " shape"
        )
    if demand.load < least:
        raise WorkloadError(
            f"{jobs} are a load of more than {demand.load:g}, since none runs shorter than a"
            " second: ask for fewer jobs"
        )


def _two(value: float) -> str:
    """Return a number with two digits, rounded down, as a possible load."""
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{math.floor(value * 10**digits) / 10**digits:g}"


def _scaled(raw: Sequence[float], sizes: Sequence[int], work: float, longest: float) -> list[float]:
    """Return durations scaled to a sum of work, each between a second and `longest`."""
    low, high = 0.0, work
    for _ in range(80):
        factor = (low + high) / 2
        total = sum(
            min(longest, max(1.0, each * factor)) * size
            for each, size in zip(raw, sizes, strict=True)
        )
        low, high = (factor, high) if total < work else (low, factor)
    return [min(longest, max(1.0, each * high)) for each in raw]


def _arrival(draw: random.Random, days: float) -> float:
    """Return a random time, more often by day than by night."""
    while True:
        time = draw.uniform(0.0, days * _DAY)
        day = (1 - math.cos(2 * math.pi * time / _DAY)) / 2  # 0 at midnight, 1 at noon
        if draw.random() < _NIGHT + (1 - _NIGHT) * day:
            return time


def _estimate(draw: random.Random, duration: float, estimates: Estimates) -> float | None:
    says, exponent = draw.random() < estimates.share, draw.uniform(-1.0, 1.0)
    return max(1.0, duration * estimates.error**exponent) if says else None
