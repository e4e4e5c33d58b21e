"""Measure CPU time and peak memory of a simulation by its number of jobs.

Jobs arrive at the same rate: a larger number simulates a longer time, 10,000 jobs in 30 days on 20
clusters with 2,880 GPUs. Each size runs in a separate process.

    python benchmarks/bench_simulate.py --jobs 1000,3000,10000 --load 0.95
"""

import argparse
import resource
import subprocess
import sys
import time

from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.generate import Demand, Estimates, generate
from hyperjob_sandbox.simulate.jobs import submission
from hyperjob_sandbox.simulate.measure import measure
from hyperjob_sandbox.simulate.sites import queue, shares_of, site
from hyperjob_sandbox.simulate.workload import Scenario

CLUSTERS, NODES = 20, 18
NODE = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
JOBS_A_DAY = 10_000 / 30


def scenario(number: int, load: float, shape: str, error: float) -> Scenario:
    """Return a scenario whose jobs have estimates that are wrong by a factor of up to `error`."""
    size = CLUSTERS * NODES * 8
    demand = Demand(
        jobs=number,
        days=number / JOBS_A_DAY,
        load=load,
        shape=shape,
        estimates=Estimates(share=1.0, error=error),
    )
    jobs = generate(demand, accelerators=size, largest=4 * NODES * 8, seed=0)
    return Scenario(
        sites=[site(f"c{place:02d}", [("gpu", NODE, NODES)]) for place in range(CLUSTERS)],
        queues=[queue("default")],
        jobs=[submission(job) for job in jobs],
    )


def one(number: int, load: float, shape: str, error: float) -> None:
    """Run a size and print its line."""
    given = scenario(number, load, shape, error)
    begin, wall = time.process_time(), time.monotonic()

    def told(ended: int, total: int, seconds: float) -> None:
        if seconds % 86400 == 0:
            spent = time.process_time() - begin
            text = f"day {seconds / 86400:.0f}: {ended} of {total} ended, {spent:.0f} s of CPU"
            print(text, file=sys.stderr, flush=True)

    history = simulate(given, progress=told)
    report = measure(history, policy="hyperjob", shares=shares_of(given))
    spent, wall = time.process_time() - begin, time.monotonic() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{number:>6} jobs  load {load:.2f}  CPU {spent:6.1f} s"
        f"  {1000 * spent / number:5.1f} ms per job  wall {wall:6.1f} s  peak {peak:.0f} MB"
        f"  in use {100 * report.use:.1f}%  mean wait {report.wait.mean / 3600:.1f} h",
        flush=True,
    )


def main() -> None:
    """Run each size in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="1000,3000,10000")
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--shape", default="llm")
    parser.add_argument("--estimate-error", type=float, default=3.0)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    sizes = [int(each) for each in chosen.jobs.split(",")]
    if chosen.one:
        one(sizes[0], chosen.load, chosen.shape, chosen.estimate_error)
        return
    for number in sizes:
        rest = [f"--load={chosen.load}", f"--shape={chosen.shape}"]
        rest += [f"--estimate-error={chosen.estimate_error}", f"--jobs={number}", "--one"]
        subprocess.run([sys.executable, __file__, *rest], check=True)


if __name__ == "__main__":
    main()
