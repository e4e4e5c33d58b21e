"""Measure the queue at many loads: use and waits beside other policies, and expected starts.

The workload is LLM-like jobs on four clusters with 576 GPUs. The second table has the error of
`status.expectedStart` with exact estimates, and with estimates that are wrong by a factor of up to
three. The output is Markdown.

    python benchmarks/bench_policies.py --loads 0.70,0.80,0.90,0.95,0.98 --seeds 21,22,23,24,25

The first table has means over the seeds, with the longest wait of each. `--patience 6h,12h,24h`
prints it alone, for these patiences of the queue, and so does `--policies hyperjob,best-effort`.
"""

import argparse
from collections.abc import Iterable, Sequence

from hyperjob_queueing.queues import PATIENCE
from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.generate import Demand, Estimates, generate
from hyperjob_sandbox.simulate.jobs import submission
from hyperjob_sandbox.simulate.measure import SimulationReport, measure, percent
from hyperjob_sandbox.simulate.sites import queue, shares_of, usual_sites
from hyperjob_sandbox.simulate.workload import Scenario

POLICIES = ("hyperjob", "best-effort", "fifo", "one-cluster")
LARGE, STOPS, LOST = "mean of 65 and more", "stops for each job", "lost"
SIZE, LARGEST = 576, 576


def report(
    number: int,
    load: float,
    seed: int,
    *,
    policy: str,
    error: float | None = None,
    patience: str = "",
) -> SimulationReport:
    """Simulate a case; with `error` all jobs have estimates that are wrong by up to this factor."""
    line = queue("default")
    if patience:
        line["metadata"]["annotations"] = {PATIENCE: patience}
    demand = Demand(
        jobs=number,
        days=number / 62.5,
        load=load,
        shape="llm",
        estimates=Estimates(share=0.0 if error is None else 1.0, error=error or 1.0),
    )
    jobs = generate(demand, accelerators=SIZE, largest=LARGEST, seed=seed)
    given = Scenario(
        sites=usual_sites(),
        queues=[line],
        jobs=[submission(job) for job in jobs],
    )
    return measure(simulate(given, policy=policy), policy=policy, shares=shares_of(given))


def hours(seconds: float) -> str:
    """Return seconds as hours."""
    return f"{seconds / 3600:.1f} h"


def row(cells: Iterable[str]) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def waits(loads: Iterable[float], number: int, seeds: Sequence[int], cases: Sequence[str]) -> None:
    """Print use and waits for each load, and each case: a policy, or a patience of the queue."""
    row(("load", "policy", "in use", "mean wait", "p50", "p95", "longest", LARGE, STOPS, LOST))
    row(["---"] * 10)
    for load in loads:
        for case in cases:
            policy, patience = (case, "") if case in POLICIES else ("hyperjob", case)
            found = [report(number, load, seed, policy=policy, patience=patience) for seed in seeds]
            spreads = [[e.wait.mean, e.wait.p50, e.wait.p95, e.wait.max, large(e)] for e in found]
            means = [sum(each) / len(found) for each in zip(*spreads, strict=True)]
            stops = sum(sum(e.stops.values()) for e in found) / number / len(found)
            lost = sum(e.use - e.goodput for e in found) / len(found)
            never = sum(e.never_started for e in found)
            name = f"{case} ({never} never start)" if never else case
            use = percent(sum(e.use for e in found) / len(found))
            row((f"{load:.2f}", name, use, *map(hours, means), f"{stops:.2f}", percent(lost)))
            print(f"<!-- longest: {', '.join(hours(e.wait.max) for e in found)} -->", flush=True)


def large(found: SimulationReport) -> float:
    """Return the mean wait of jobs of 65 accelerators and more."""
    each = [spread for label, spread in found.sizes.items() if label in ("65-256", "257+")]
    return sum(e.mean * e.count for e in each) / sum(e.count for e in each)


def forecasts(loads: Iterable[float], number: int, seed: int) -> None:
    """Print the error of expected starts for each load and kind of estimates."""
    row(("load", "estimates", "forecasts", "error p50", "error p95", "late p50", "late p95"))
    row(["---"] * 7)
    for load in loads:
        for name, error in (("exact", 1.0), ("wrong, 1/3 to 3 times", 3.0)):
            told = report(number, load, seed, policy="hyperjob", error=error).forecasts
            errors = told.error.p50, told.error.p95, told.late.p50, told.late.p95
            row((f"{load:.2f}", name, str(told.error.count), *map(hours, errors)))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=250)
    parser.add_argument("--loads", default="0.70,0.80,0.90,0.95,0.98")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--policies", default="")
    parser.add_argument("--patience", default="")
    chosen = parser.parse_args()
    loads = [float(each) for each in chosen.loads.split(",")]
    seeds = [int(each) for each in chosen.seeds.split(",")]
    cases = [each for each in f"{chosen.policies},{chosen.patience}".split(",") if each]
    waits(loads, chosen.jobs, seeds, cases or POLICIES)
    if not cases:
        print()
        forecasts(loads, chosen.jobs, seeds[0])


if __name__ == "__main__":
    main()
