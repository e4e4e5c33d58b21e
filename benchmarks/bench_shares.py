"""Measure how queues share: use, waits, stops, and what each queue has had, beside other policies.

`days`: LLM-like jobs of three queues of equal weight on four clusters with 576 GPUs. `two`: on 256
GPUs one queue has had all for a day with small jobs, and from then on another one always wants all
of them for six hours. `month`: on the
576 GPUs a queue whose jobs are all larger than its share and one of twice its weight always want
more, and a third has bursts (4 minutes of CPU). The output is Markdown.

    python benchmarks/bench_shares.py --parts days,two,month --seeds 0,1,3,31,32,33,34,35
"""

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence

from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.generate import Demand, generate
from hyperjob_sandbox.simulate.history import History
from hyperjob_sandbox.simulate.jobs import JobNumbers, submission
from hyperjob_sandbox.simulate.measure import measure, percent
from hyperjob_sandbox.simulate.sites import queue, shares_of, site, usual_sites
from hyperjob_sandbox.simulate.workload import Scenario, Site

HOUR, DAY = 3600.0, 24
SIZE = 576
NODE = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
TABLE = ("queues", "policy", "in use", "mean wait", "longest", "UNFAIR", "stops for each job")
MONTH = {"a": 1, "b": 2, "c": 1}
"""The queues of a month by weight: large jobs, small jobs, bursts."""


def row(cells: Sequence[str]) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def run(
    jobs: Sequence[JobNumbers],
    weights: Mapping[str, int],
    *,
    sites: Sequence[Site] = (),
    reclaimable: bool = True,
    half_life: float = DAY,
    policy: str = "hyperjob",
) -> tuple[History, list[float]]:
    """Simulate jobs; return the history, and use, waits, unfairness and stops as numbers."""
    queues = [
        queue(name, {"weight": weight, "reclaimable": reclaimable})
        for name, weight in weights.items()
    ]
    given = Scenario(
        sites=sites or usual_sites(),
        queues=queues,
        jobs=[submission(job) for job in sorted(jobs, key=lambda job: job.arrival)],
        half_life=half_life * HOUR,
    )
    history = simulate(given, policy=policy)
    found = measure(history, policy=policy, shares=shares_of(given))
    stops = sum(found.stops.values()) / len(jobs)
    return history, [
        found.use,
        found.wait.mean / HOUR,
        found.wait.max / HOUR,
        found.unfair,
        stops,
    ]


def days(seeds: Sequence[int], number: int, load: float) -> None:
    """Print means over seeds for queues that are reclaimable or not, with and without a memory."""
    names = {"a": 1, "b": 1, "c": 1}
    demand = Demand(
        jobs=number, days=number / 62.5, load=load, shape="llm", queues=dict.fromkeys(names, 1.0)
    )
    cases = [generate(demand, accelerators=SIZE, largest=SIZE, seed=seed) for seed in seeds]
    row(TABLE)
    row(["---"] * len(TABLE))
    for reclaimable, policy, half_life in (
        (True, "hyperjob", DAY),
        (True, "hyperjob", 0),
        (False, "hyperjob", DAY),
        (False, "hyperjob", 0),
        (False, "best-effort", DAY),
    ):
        found = [
            run(jobs, names, reclaimable=reclaimable, half_life=half_life, policy=policy)[1]
            for jobs in cases
        ]
        use, mean, longest, unfair, stops = (
            sum(each) / len(found) for each in zip(*found, strict=True)
        )
        row(
            (
                f"reclaimable: {str(reclaimable).lower()}",
                policy if half_life else f"{policy}, half-life 0",
                percent(use),
                f"{mean:.1f} h",
                f"{longest:.0f} h",
                percent(unfair),
                f"{stops:.2f}",
            )
        )


def two(seed: int, *, length: int = 5, large: int = 256) -> None:
    """Print when HyperJobs larger than a share start, and what their queue has had of each day.

    They come after a day in which the other queue has had all.
    """
    draw, end = random.Random(f"c {seed}"), (1 + length) * DAY * HOUR
    jobs = [
        JobNumbers(
            name=f"big-{k}", arrival=DAY * HOUR + k, duration=6 * HOUR, gpus=large, queue="a"
        )
        for k in range(30)
    ]
    jobs += stream(draw, "b", (4, 8, 16), (1.8, 6), 0.9 * large, until=end)
    sites = [site(f"m{number}", [("gpu", NODE, large // 32)]) for number in range(4)]
    for reclaimable in (True, False):
        history, _ = run(jobs, {"a": 1, "b": 1}, sites=sites, reclaimable=reclaimable)
        had = {name: history.queues[name].averages(end, 1 + length)[1:] for name in "ab"}
        parts = [percent(a / (a + b)) for a, b in zip(had["a"], had["b"], strict=True)]
        lives = history.lives.values()
        starts = sorted(
            each.started / HOUR - DAY for each in lives if each.job.queue == "a" and each.started
        )
        print(f"reclaimable: {reclaimable}: the large ones have {', '.join(parts)} of the days;")
        print(f"they start after {', '.join(f'{each:.1f}' for each in starts[:8])} h", flush=True)


def month(seed: int, *, length: int = 30) -> None:
    """Print what a queue of large HyperJobs has had beside another that always wants more."""
    draw, end = random.Random(f"month {seed}"), length * DAY * HOUR
    jobs = list(stream(draw, "a", (192, 256, 320, 400), (2, 8), 0.6 * SIZE, until=end))
    jobs += stream(draw, "b", (16, 32, 64), (1, 8), 0.8 * SIZE, until=end)
    for number in range(length // 3):
        since = (3 * number + draw.uniform(0.5, 2)) * DAY * HOUR
        burst = stream(
            draw, "c", (8, 32, 64), (1, 8), 1.5 * SIZE, since=since, until=since + 8 * HOUR
        )
        jobs += burst
    history, (use, *_) = run(jobs, MONTH)
    a, b = (history.queues[name].averages(end, length * DAY) for name in "ab")
    decay, had, off = 0.5 ** (1 / DAY), [0.0, 0.0], []
    for hour, both in enumerate(zip(a, b, strict=True)):
        had = [before * decay + now * (1 - decay) for before, now in zip(had, both, strict=True)]
        if hour >= 2 * DAY:
            off.append(abs(had[0] / sum(had) * (MONTH["a"] + MONTH["b"]) / MONTH["a"] - 1))
    off.sort()
    share = sum(a[2 * DAY :]) / (sum(a[2 * DAY :]) + sum(b[2 * DAY :]))
    half, most = off[len(off) // 2], off[len(off) * 9 // 10]
    print(
        f"{len(jobs)} jobs in a month: {percent(use)} in use, the large ones have {percent(share)}"
    )
    print(f"of both; what they consumed is off by {percent(half)} (p50), {percent(most)} (p90)")


def stream(
    draw: random.Random,
    name: str,
    sizes: Sequence[int],
    hours: tuple[float, float],
    rate: float,
    *,
    until: float,
    since: float = 0.0,
) -> Iterator[JobNumbers]:
    """Yield jobs of a queue that ask for `rate` accelerators on average from `since` on."""
    time, number = since, 0
    while True:
        gpus, duration = draw.choice(sizes), draw.uniform(*hours) * HOUR
        if time >= until:
            return
        number += 1
        yield JobNumbers(
            name=f"{name}-{since:.0f}-{number}",
            arrival=time,
            duration=duration,
            gpus=gpus,
            queue=name,
        )
        time += gpus * duration / rate * draw.expovariate(1.0)


def main() -> None:
    """Print the parts that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default="days")
    parser.add_argument("--seeds", default="0,1,3")
    parser.add_argument("--jobs", type=int, default=250)
    parser.add_argument("--load", type=float, default=0.98)
    chosen = parser.parse_args()
    seeds = [int(each) for each in chosen.seeds.split(",")]
    for part in chosen.parts.split(","):
        if part == "days":
            days(seeds, chosen.jobs, chosen.load)
        elif part == "two":
            two(seeds[0])
        else:
            month(seeds[0])


if __name__ == "__main__":
    main()
