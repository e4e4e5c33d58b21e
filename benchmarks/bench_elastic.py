"""Measure what HyperJobs with any number of sub-jobs save, beside the same ones with a fixed one.

A part of the jobs, chosen at random, can train with a quarter of their accelerators and use four
times as many; their speed grows with the number. The others are rigid. `--world` makes each elastic
job one world, which stops to change its size and loses the work since its last checkpoint; else its
sub-jobs come and go. The jobs have no estimates. The last row is a bound: no node is too small for
a pod, no change takes time, and elastic jobs have all that others leave. The output is Markdown.

    python benchmarks/bench_elastic.py --jobs 1000 --load 0.9 --elastic 0.3 --seed 0
"""

import argparse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.generate import SHAPES, Demand, generate
from hyperjob_sandbox.simulate.history import History, Life
from hyperjob_sandbox.simulate.jobs import PARTS, JobNumbers, divide, submission
from hyperjob_sandbox.simulate.measure import measure, spread
from hyperjob_sandbox.simulate.sites import queue, shares_of, site
from hyperjob_sandbox.simulate.workload import Scenario, Submission

NODE = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
CLUSTERS, NODES, GPUS = ("a", "b", "c", "d"), 8, 8
ALL = len(CLUSTERS) * NODES * GPUS


def submitted(job: JobNumbers, *, world: bool) -> Submission:
    """Return a job; one world has no quorum."""
    made = submission(job)
    spec = made.hyperjob["spec"]
    if job.elastic and world:
        del spec["quorum"]
    return made


def waits(history: History, lives: Sequence[Life]) -> float:
    """Return the 95th percentile of the waits up to the first start."""
    end = history.end
    return spread((each.started or end) - each.job.arrival for each in lives).p95


@dataclass
class Part:
    """A job while it waits or runs: what is left of its work, and its accelerators."""

    job: JobNumbers
    least: int
    most: int
    left: float
    has: int = 0
    waited: float = 0.0
    took: float = 0.0


def part(job: JobNumbers) -> Part:
    """Return a job with the accelerators that it can train with."""
    pods, each = divide(job.gpus, GPUS)
    least, most = (
        (max(1, pods // PARTS) * each, PARTS * pods * each) if job.elastic else (job.gpus,) * 2
    )
    return Part(job, least, most, job.gpus * job.duration)


def at_will(jobs: Sequence[JobNumbers], last: float) -> tuple[list[Part], float]:
    """Run jobs that change their size without cost; return them, and the use up to `last`."""
    todo, line, running = deque(map(part, jobs)), list[Part](), list[Part]()
    ended, now, used = list[Part](), 0.0, 0.0
    while todo or line or running:
        while todo and todo[0].job.arrival <= now:
            line.append(todo.popleft())
        room = ALL - sum(each.least for each in running)
        for each in list(line):
            if each.least <= room:
                room -= each.least
                each.waited = now - each.job.arrival
                line.remove(each)
                running.append(each)
        for each in running:
            each.has = min(each.most, each.least + room)
            room -= each.has - each.least
        ends = [now + each.left / each.has for each in running]
        then = min([*ends, *(each.job.arrival for each in [*todo][:1])])
        used += sum(each.has for each in running) * (min(then, last) - min(now, last))
        for each, end in zip(list(running), ends, strict=True):
            each.left -= each.has * (then - now)
            if end == then:
                each.took = then - each.job.arrival
                running.remove(each)
                ended.append(each)
        now = then
    return ended, used / (ALL * last)


def row(cells: Sequence[str]) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print a row with all jobs rigid, one with a part of them elastic, and the bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--days", type=float, default=3.0)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--elastic", type=float, default=0.3)
    parser.add_argument("--world", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shape", choices=SHAPES, default="helios")
    given = parser.parse_args()
    size = {"jobs": given.jobs, "days": given.days, "load": given.load, "shape": given.shape}
    demand = Demand(**size, elastic=given.elastic)
    jobs = generate(demand, accelerators=ALL, largest=ALL, seed=given.seed)
    chosen = {job.name for job in jobs if job.elastic}
    last = max(job.arrival for job in jobs)
    head = ("jobs", "mean completion", "p50", "p95", "use until the last arrival", "mean wait")
    row((*head, "p95 wait of the rigid", "stops", "ratio"))
    row(["---"] * 9)
    baseline = 0.0
    for name, elastic in (("all rigid", False), (f"{given.elastic:.0%} elastic", True)):
        changed = [replace(job, elastic=elastic and job.name in chosen) for job in jobs]
        scenario = Scenario(
            sites=[site(each, [("gpu", NODE, NODES)]) for each in CLUSTERS],
            queues=[queue("default")],
            jobs=[submitted(job, world=given.world) for job in changed],
        )
        history = simulate(scenario)
        found = measure(history, policy=name, shares=shares_of(scenario))
        took, baseline = found.completion, baseline or found.completion.mean
        rigid = [life for key, life in history.lives.items() if key.partition("/")[2] not in chosen]
        used = sum(each.integral(last) for each in history.used.values()) / (ALL * last)
        hours = [f"{each / 3600:.2f} h" for each in (took.mean, took.p50, took.p95)]
        stops = sum(sum(life.stops.values()) for life in history.lives.values())
        waited = [f"{each / 3600:.2f} h" for each in (found.wait.mean, waits(history, rigid))]
        row((name, *hours, f"{used:.1%}", *waited, str(stops), f"{took.mean / baseline:.2f}"))
    ended, used = at_will(jobs, last)
    took, wait = spread(each.took for each in ended), spread(each.waited for each in ended)
    late = spread(each.waited for each in ended if not each.job.elastic).p95
    hours = [f"{each / 3600:.2f} h" for each in (took.mean, took.p50, took.p95, wait.mean, late)]
    row(("at will", *hours[:3], f"{used:.1%}", *hours[3:], "0", f"{took.mean / baseline:.2f}"))


if __name__ == "__main__":
    main()
