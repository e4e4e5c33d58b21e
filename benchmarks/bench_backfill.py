"""Measure backfill by estimates: use, waits and the error of expected starts, at many loads.

The workload is LLM-like jobs on four clusters with 576 GPUs. Without estimates the controller does
no backfill; estimates are exact, or wrong by a factor of up to three. The output is a Markdown
table.

    python benchmarks/bench_backfill.py --loads 0.70,0.80,0.90,0.95,0.98
"""

import argparse

from hyperjob.simulate.engine import simulate
from hyperjob.simulate.generate import Demand, Estimates, generate
from hyperjob.simulate.jobs import Style, submission
from hyperjob.simulate.measure import SimulationReport, measure
from hyperjob.simulate.sites import queue, shares_of, usual_sites
from hyperjob.simulate.workload import Scenario

HEAD = (
    *("load", "estimates", "in use", "mean wait", "p95", "p99"),
    *("forecasts", "error p50", "error p95", "late p95"),
)
SIZE, LARGEST = 576, 576


def report(number: int, load: float, error: float | None, seed: int) -> SimulationReport:
    """Simulate a case; `error` None is a workload without estimates."""
    demand = Demand(
        jobs=number,
        days=number / 62.5,
        load=load,
        shape="llm",
        estimates=Estimates(share=1.0, error=error or 1.0),
    )
    jobs = generate(demand, accelerators=SIZE, largest=LARGEST, seed=seed)
    given = Scenario(
        sites=usual_sites(),
        queues=[queue("default")],
        jobs=[submission(job, Style()) for job in jobs],
    )
    policy = "hyperjob" if error is not None else "no-backfill"
    return measure(simulate(given, policy=policy), policy=policy, shares=shares_of(given))


def hours(seconds: float) -> str:
    """Return seconds as hours."""
    return f"{seconds / 3600:.1f} h"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=250)
    parser.add_argument("--loads", default="0.70,0.80,0.90,0.95,0.98")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n" + "| --- " * len(HEAD) + "|", flush=True)
    for load in (float(each) for each in chosen.loads.split(",")):
        for name, error in (("none", None), ("exact", 1.0), ("wrong, 1/3 to 3 times", 3.0)):
            found = report(chosen.jobs, load, error, chosen.seed)
            told = found.forecasts
            errors = (hours(told.error.p50), hours(told.error.p95), hours(told.late.p95))
            cells = [
                *(f"{load:.2f}", name, f"{100 * found.use:.1f}%"),
                *(hours(each) for each in (found.wait.mean, found.wait.p95, found.wait.p99)),
                str(told.error.count),
                *(errors if told.error.count else ("", "", "")),
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
