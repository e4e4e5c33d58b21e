"""Measure what alternatives save: jobs that may run on H100 or A100 clusters, beside H100 only.

A job takes its duration on an H100, and 1 / SPEED of it on as many A100. `load` is the work of all
jobs as a part of what both kinds can do. The jobs have no estimates; two thirds of them
run a template again. Beside the first alternative only, the rival is one shape that may use all
clusters. The last row is a bound: each job runs on H100 as soon as it arrives. With `--trace FILE`
sizes and durations are those of a trace that `hyperjob simulate` reads. The output is Markdown.

    python benchmarks/bench_alternatives.py --jobs 1000 --load 0.9 --seed 0
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.generate import SHAPES, Demand, generate
from hyperjob_sandbox.simulate.jobs import JobNumbers, submission
from hyperjob_sandbox.simulate.measure import measure, spread
from hyperjob_sandbox.simulate.readers import read
from hyperjob_sandbox.simulate.sites import queue, shares_of, site
from hyperjob_sandbox.simulate.workload import NodeGroup, Scenario, Submission

NODE = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
FAST, SLOW = ["h100-a", "h100-b"], ["a100-a", "a100-b"]
NODES, GPUS, SPEED = 16, 8, 0.45
EQUIVALENT = round(len(FAST) * NODES * GPUS + len(SLOW) * NODES * GPUS * SPEED)
LARGEST = len(FAST) * NODES * GPUS

Change = Callable[[Object], Object]


def first_only(group: Object) -> Object:
    """Return a replicatedJob that runs on H100 clusters."""
    return {**group, "clusterNames": FAST, "clusterPolicy": "Required"}


def either(group: Object) -> Object:
    """Return a replicatedJob that runs on H100 clusters or, as an alternative, on A100 clusters."""
    alternatives = [{"name": "h100"}, {"name": "a100", "clusterNames": SLOW}]
    return {**first_only(group), "alternatives": alternatives}


def anywhere(group: Object) -> Object:
    """Return a replicatedJob that runs on all clusters, also on both kinds at once."""
    return group


POLICIES: dict[str, Change] = {
    "first alternative only": first_only,
    "one shape, all clusters": anywhere,
    "alternatives": either,
}


def workload(chosen: argparse.Namespace) -> list[JobNumbers]:
    """Return the jobs, whose work is `load` times that of both kinds until the last arrival."""
    if chosen.trace is None:
        demand = Demand(
            jobs=chosen.jobs, days=chosen.days, load=chosen.load, shape=chosen.shape, recurring=0.67
        )
        return generate(demand, accelerators=EQUIVALENT, largest=LARGEST, seed=chosen.seed)
    jobs = read(chosen.trace)[chosen.seed * chosen.jobs :][: chosen.jobs]
    begin, end = jobs[0].arrival, jobs[-1].arrival
    work = sum(job.gpus * job.duration for job in jobs)
    stretch = work / (chosen.load * EQUIVALENT * (end - begin))
    return [replace(job, arrival=(job.arrival - begin) * stretch, queue="default") for job in jobs]


def changed(job: Submission, change: Change) -> Submission:
    """Return a job with another replicatedJob."""
    spec = job.hyperjob["spec"]
    groups = [change(group) for group in spec["replicatedJobs"]]
    return replace(job, hyperjob={**job.hyperjob, "spec": {**spec, "replicatedJobs": groups}})


def row(cells: Sequence[str]) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def show(name: str, times: Sequence[float], never: int, ratio: float) -> None:
    """Print the row of a policy; the times are in seconds."""
    row((name, *(f"{each / 3600:.1f} h" for each in times), str(never), f"{ratio:.2f}"))


def main() -> None:
    """Print a table with a row for each policy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--days", type=float, default=5.0)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shape", choices=SHAPES, default="helios")
    parser.add_argument("--trace", type=Path)
    chosen = parser.parse_args()
    numbers = workload(chosen)
    jobs = [submission(job) for job in numbers]
    sites = [site(name, [("gpu", NODE, NODES)]) for name in FAST]
    sites += [site(name, [NodeGroup("gpu", NODE, NODES, speed=SPEED)]) for name in SLOW]
    row(("policy", "mean completion", "p50", "p95", "mean wait", "never started", "ratio"))
    row(["---"] * 7)
    baseline = 0.0
    for name, change in POLICIES.items():
        scenario = Scenario(
            sites=sites, queues=[queue("default")], jobs=[changed(job, change) for job in jobs]
        )
        found = measure(simulate(scenario), policy=name, shares=shares_of(scenario))
        took, baseline = found.completion, baseline or found.completion.mean
        hours = (took.mean, took.p50, took.p95, found.wait.mean)
        show(name, hours, found.never_started, took.mean / baseline)
    least = spread(job.duration for job in numbers)
    show("no wait for H100", (least.mean, least.p50, least.p95, 0.0), 0, least.mean / baseline)


if __name__ == "__main__":
    main()
