"""Report a simulation: use, waits, completion, slowdown, fairness, fragmentation, loss. Pure.

Times are in seconds, use is between 0 and 1. A job waits until its first start and again after each
stop. What has not ended waits until the end of the simulation: starving jobs does not improve the
result of a policy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.phases import Phase
from hyperjob_sandbox.simulate.history import History, Life, Steps

PARTS: Final = 120
"""Number of points of a series."""
SHORTEST: Final = 60.0
"""Minimum duration of a job in the slowdown, in seconds: tiny jobs would dominate it."""
_NAMED: Final = 5
"""Maximum number of named jobs that never started or ended."""
_SIZES: Final = ((1, 1), (2, 8), (9, 64), (65, 256), (257, 10**9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The distribution of values: number, mean, percentiles and maximum."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReport:
    """A queue: `share` and `used` as parts of all accelerators, in the time of arrivals."""

    share: float
    used: float
    wait: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecasts:
    """The accuracy of expected starts, by the first expected start of each HyperJob.

    `ahead` is the time from the forecast to the expected start, `late` the delay of the start
    against it (negative: earlier), `error` the absolute value of `late`.
    """

    ahead: Spread
    late: Spread
    error: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """The results of one simulation.

    Jobs arrive in the seconds of `window`, and the last one ends at `end`. `use` is the part of all
    accelerators in use, `goodput` that of work which no stop has lost. `lost` are the
    accelerator-seconds of repeated work, and `stops` counts the stops of jobs by cause. `unfair` is
    the average part of all accelerators that queues used beyond their due while another queue had
    less than its due. `splinters` is the part that was free on nodes in use, `idle` the part that
    was free while jobs waited. `stuck` has the last status messages of the first jobs that never
    started or ended. `series` are means over equal parts of time.
    """

    policy: str
    jobs: int
    completed: int
    failed: int
    never_started: int
    unfinished: int
    stuck: Mapping[str, str]
    window: float
    end: float
    use: float
    goodput: float
    clusters: Mapping[str, float]
    wait: Spread
    completion: Spread
    slowdown: Spread
    queues: Mapping[str, QueueReport]
    sizes: Mapping[str, Spread]
    unfair: float
    splinters: float
    idle: float
    stops: Mapping[str, int]
    lost: float
    forecasts: Forecasts
    series: Mapping[str, Mapping[str, Sequence[float]]]


def percent(part: float) -> str:
    """Return a part of 1 as a percentage."""
    return f"{100 * part:.1f}%"


def spread(values: Iterable[float]) -> Spread:
    """Return the distribution of values, by nearest rank; zeros without values."""
    ranked = sorted(values)
    if not ranked:
        return Spread(count=0, mean=0.0, p50=0.0, p95=0.0, p99=0.0, max=0.0)
    number = len(ranked)

    def rank(part: int) -> float:
        return ranked[max(0, -(-part * number // 100) - 1)]

    return Spread(
        count=number,
        mean=sum(ranked) / number,
        p50=rank(50),
        p95=rank(95),
        p99=rank(99),
        max=ranked[-1],
    )


def measure(history: History, *, policy: str, shares: Mapping[str, float]) -> SimulationReport:
    """Return the report; `shares` are the shares of queues, as parts of all accelerators.

    Use, fairness and fragmentation are of the time in which jobs arrive: afterwards clusters
    become empty under every policy.
    """
    lives = list(history.lives.values())
    window = max((life.job.arrival for life in lives), default=0.0) or history.end or 1.0
    total = sum(history.sizes.values()) or 1
    capacity = total * window
    waits = {id(life): _waited(life, history.end) for life in lives}
    ended = [life for life in lives if life.ended is not None and life.started is not None]
    idle = history.free.integral_while(_sum(history.asked.values()), window)
    queues = sorted({life.job.queue for life in lives} | set(history.queues))
    used = {name: history.queues.get(name, Steps()) for name in queues}
    times = [(life, life.ended - life.job.arrival) for life in ended if life.ended]
    return SimulationReport(
        policy=policy,
        jobs=len(lives),
        completed=sum(life.outcome == Phase.COMPLETED for life in lives),
        failed=sum(life.outcome == Phase.FAILED for life in lives),
        never_started=sum(life.started is None for life in lives),
        unfinished=sum(life.started is not None and life.ended is None for life in lives),
        stuck=_stuck(lives),
        window=window,
        end=history.end,
        use=sum(each.integral(window) for each in history.used.values()) / capacity,
        goodput=_goodput(lives, window) / capacity,
        clusters={
            name: each.integral(window) / (window * (history.sizes[name] or 1))
            for name, each in sorted(history.used.items())
        },
        wait=spread(waits.values()),
        completion=spread(time for _, time in times),
        slowdown=spread(time / max(life.job.duration, SHORTEST) for life, time in times),
        queues={
            name: QueueReport(
                share=shares.get(name, 0.0),
                used=used[name].integral(window) / capacity,
                wait=spread(waits[id(life)] for life in lives if life.job.queue == name),
            )
            for name in queues
        },
        sizes=_by_size(lives, waits),
        unfair=_unfair(used, history.asked, shares, window, total),
        splinters=history.splinters.integral(window) / capacity,
        idle=idle / capacity,
        stops=_stops(lives),
        lost=sum(life.lost for life in lives),
        forecasts=_forecasts(lives),
        series=_series(history, used, total, end=history.end or window),
    )


def _by_size(lives: Sequence[Life], waits: Mapping[int, float]) -> dict[str, Spread]:
    """Return the waits of jobs by the range of their accelerators; `waits` has them by id."""
    found = {
        _size_label(low, high): spread(
            waits[id(life)] for life in lives if low <= max(1, life.job.gpus) <= high
        )
        for low, high in _SIZES
    }
    return {label: each for label, each in found.items() if each.count}


def _series(
    history: History, used: Mapping[str, Steps], total: int, *, end: float
) -> dict[str, dict[str, list[float]]]:
    """Return means of PARTS parts of the time up to `end`.

    Those of clusters are parts of their accelerators, those of queues and free accelerators parts
    of all `total` accelerators; those of waiting jobs are numbers of accelerators.
    """

    def parts(steps: Steps, whole: int) -> list[float]:
        return [value / (whole or 1) for value in steps.averages(end, PARTS)]

    free = {"free": history.free, "on nodes in use": history.splinters}
    clusters, waiting = sorted(history.used.items()), sorted(history.asked.items())
    return {
        "clusters": {name: parts(each, history.sizes[name]) for name, each in clusters},
        "queues": {name: parts(each, total) for name, each in used.items()},
        "free": {name: parts(each, total) for name, each in free.items()},
        "waiting": {name: parts(each, 1) for name, each in waiting},
    }


def _stuck(lives: Iterable[Life]) -> Mapping[str, str]:
    """Return the last messages of the first jobs, by name, that have not ended."""
    found = sorted(life.job.key for life in lives if life.ended is None)[:_NAMED]
    return {life.job.key: life.message for life in lives if life.job.key in found}


def _size_label(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low}-{high}" if high < 10**9 else f"{low}+"


def _waited(life: Life, end: float) -> float:
    """Return the seconds in which a job did not run, also after stops; up to `end` if it runs on.

    The control plane's time between the last second of its work and its end does not count.
    """
    waited, last = 0.0, life.job.arrival
    for part in life.segments:
        waited += part.begin - last
        last = part.end
    if life.ended is None or not life.segments:
        waited += max(0.0, (end if life.ended is None else life.ended) - last)
    return waited


def _goodput(lives: Iterable[Life], window: float) -> float:
    """Return the accelerator-seconds of runs in the window, minus the lost work."""
    ran = lost = 0.0
    for life in lives:
        for part in life.segments:
            seconds = max(0.0, min(part.end, window) - min(part.begin, window))
            ran += seconds * sum(part.devices.values())
        lost += life.lost
    return max(0.0, ran - lost)


def _forecasts(lives: Iterable[Life]) -> Forecasts:
    found = [
        (life.forecast.start - life.forecast.told, life.started - life.forecast.start)
        for life in lives
        if life.forecast is not None and life.started is not None
    ]
    return Forecasts(
        ahead=spread(ahead for ahead, _ in found),
        late=spread(late for _, late in found),
        error=spread(abs(late) for _, late in found),
    )


def _stops(lives: Iterable[Life]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for life in lives:
        for cause, number in life.stops.items():
            found[cause] = found.get(cause, 0) + number
    return dict(sorted(found.items()))


def _sum(steps: Iterable[Steps]) -> Steps:
    """Return the sum of step functions."""
    changes: list[tuple[float, float]] = []
    for each in steps:
        before = 0.0
        for time, value in zip(each.times, each.values, strict=True):
            changes.append((time, value - before))
            before = value
    found = Steps()
    for time, change in sorted(changes):
        found.add(time, change)
    return found


def _unfair(
    used: Mapping[str, Steps],
    asked: Mapping[str, Steps],
    shares: Mapping[str, float],
    window: float,
    total: int,
) -> float:
    """Return the use of queues beyond their due while other queues had less than theirs."""
    have = {name: each.averages(window, PARTS) for name, each in used.items()}
    want = {
        name: asked[name].averages(window, PARTS) if name in asked else [0.0] * PARTS
        for name in used
    }
    sums = 0.0
    for part in range(PARTS):
        demand = {name: have[name][part] + want[name][part] for name in used}
        due = due_of(demand, {name: shares.get(name, 0.0) * total for name in used})
        over = sum(max(0.0, have[name][part] - due[name]) for name in used)
        short = sum(max(0.0, due[name] - have[name][part]) for name in used)
        sums += min(over, short)
    return sums / PARTS / total


def due_of(demand: Mapping[str, float], shares: Mapping[str, float]) -> dict[str, float]:
    """Return the due of each queue: at most its demand; the rest is divided by share."""
    left, due = sum(shares.values()), dict.fromkeys(demand, 0.0)
    hungry = {name for name, amount in demand.items() if amount > 0 and shares.get(name, 0.0) > 0}
    while hungry and left > 1e-9:
        weight = sum(shares[name] for name in sorted(hungry))
        full = {
            name
            for name in sorted(hungry)
            if due[name] + left * shares[name] / weight >= demand[name]
        }
        if not full:
            for name in sorted(hungry):
                due[name] += left * shares[name] / weight
            break
        for name in sorted(full):
            left -= demand[name] - due[name]
            due[name] = demand[name]
        hungry -= full
    return due
