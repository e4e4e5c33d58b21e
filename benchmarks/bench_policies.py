"""Measure the queue at many loads: use and waits beside other policies, and expected starts.

The workload is LLM-like jobs on four clusters with 576 GPUs. The second table has the error of
`status.expectedStart` with exact estimates, and with estimates that are wrong by a factor of up to
three. The output is Markdown.

    python benchmarks/bench_policies.py --loads 0.70,0.80,0.90,0.95,0.98

`--patience 6h,12h,24h` prints the first table alone, for these patiences of the queue.
"""

import argparse
from collections.abc import Iterable, Sequence

from hyperjob_engine.queueing.queues import PATIENCE
from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.generate import Demand, Estimates, generate
from hyperjob_sandbox.simulate.jobs import submission
from hyperjob_sandbox.simulate.measure import SimulationReport, measure, percent
from hyperjob_sandbox.simulate.sites import queue, shares_of, usual_sites
from hyperjob_sandbox.simulate.workload import Scenario

POLICIES = ("hyperjob", "best-effort", "fifo", "one-cluster")
LARGE = ("65-256", "257+")
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


def waits(loads: Iterable[float], number: int, seed: int, patiences: Sequence[str]) -> None:
    """Print use and waits for each load, and each policy or patience."""
    cases = [(f"hyperjob, {each}", "hyperjob", each) for each in patiences]
    cases += [(each, each, "") for each in POLICIES if not patiences or each == "best-effort"]
    row(("load", "policy", "in use", "mean wait", "p50", "p95", "longest", "mean of 65 and more"))
    row(["---"] * 8)
    for load in loads:
        for name, policy, patience in cases:
            found = report(number, load, seed, policy=policy, patience=patience)
            wait = found.wait
            large = [each for label, each in found.sizes.items() if label in LARGE]
            mean = sum(each.mean * each.count for each in large) / sum(e.count for e in large)
            spread = (wait.mean, wait.p50, wait.p95, wait.max, mean)
            never = f" ({found.never_started} never start)" if found.never_started else ""
            row((f"{load:.2f}", name + never, percent(found.use), *map(hours, spread)))


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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=lambda text: text.split(","), default=())
    chosen = parser.parse_args()
    loads = [float(each) for each in chosen.loads.split(",")]
    waits(loads, chosen.jobs, chosen.seed, chosen.patience)
    if chosen.patience:
        return
    print()
    forecasts(loads, chosen.jobs, chosen.seed)


if __name__ == "__main__":
    main()
