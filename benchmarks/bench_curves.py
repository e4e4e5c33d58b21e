"""The curves of the page: 200 HyperJobs with 5,000 progress points each in one history file.

Prints how long the page of one HyperJob and the page of 12 over each other take, as ratios to
reading all points of the file, and what the file and the process hold.
"""

import argparse
import asyncio
import resource
import sqlite3
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hyperjob.client.summary import read
from hyperjob.ui.charts.curves import Run, charts
from hyperjob.ui.history.points import ProgressPoint
from hyperjob.ui.history.recorder import History
from hyperjob.ui.history.store import HistoryFile, Known, Retention
from hyperjob.ui.pages.metrics import RUNS
from hyperjob.ui.render import render

BEGIN = datetime.now(UTC) - timedelta(hours=5)


def filled(path: Path, runs: int, points: int) -> float:
    """Write the points in batches of one point of each HyperJob; return the seconds of a batch."""
    store = HistoryFile(path, limits=Retention())
    known = [Known(f"u{n}", "team", f"run-{n}", "default", BEGIN) for n in range(runs)]
    spent = []
    for step in range(points):
        at = BEGIN + timedelta(seconds=3 * step)
        metrics = {"loss": 4.0 / (1 + step / 100), "accuracy": step / points, "lr": 1e-3}
        new = [(each.uid, ProgressPoint(at, step, metrics)) for each in known]
        began = time.perf_counter()
        store.write((), (), known if step == 0 else (), new, now=at.timestamp())
        spent.append(time.perf_counter() - began)
    store.close()
    return statistics.median(spent)


async def drawn(path: Path, runs: int, times: int) -> list[float]:
    """Return the seconds of each drawing of the curves of `runs` HyperJobs."""
    found = []
    async with History(path) as history:
        history.record(BEGIN, read({"metadata": {"namespace": "team", "name": "x", "uid": "x"}}))
        for number in range(times):
            began = time.perf_counter()
            shown = [
                Run(f"team/run-{n}", n, await history.points(f"u{n}"))
                for n in range(number, number + runs)
            ]
            render(
                "parts/curves.html",
                charts=charts(shown, "step"),
                runs=shown,
                axis="step",
                legend=True,
            )
            found.append(time.perf_counter() - began)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--points", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite"
        batch = filled(path, options.runs, options.points)
        size = path.stat().st_size
        database = sqlite3.connect(path)
        began = time.perf_counter()
        total = len(database.execute("SELECT uid, at, step, metrics FROM points").fetchall())
        everything = time.perf_counter() - began
        database.close()
        print(f"{total} points in {size / 2**20:.0f} MiB, {size / total:.0f} bytes each")
        print(f"one point of each of {options.runs} HyperJobs written in {batch * 1e3:.1f} ms")
        print(f"all points read in {everything:.2f} s, the baseline")
        for runs in (1, RUNS):
            spent = asyncio.run(drawn(path, runs, 10))
            middle, worst = statistics.median(spent), max(spent)
            print(
                f"curves of {runs:2} HyperJobs: {middle * 1e3:.0f} ms, most {worst * 1e3:.0f} ms,"
                f" {middle / everything:.3f} of the baseline"
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"the process held at most {peak:.0f} MiB, the rows of the baseline included")


if __name__ == "__main__":
    main()
