"""Measure the cost of a change while thousands of HyperJobs wait in many queues.

usage: python benchmarks/bench_queueing.py [--waiting 10000] [--queues 50] [--clusters 100]

The baseline in the same run is a plain scheduler, which sorts all HyperJobs at each change and
tries each against a single sum of free accelerators, without gangs, limits, heads or clusters.
Times of one tree differ by a quarter from run to run where other work shares the processors. The
number of calls of functions does not: it is the measure for a comparison of two trees.
"""

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.resources import Resources, fits, parse_resources, subtract, total
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import parse_queue
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, admitted, new_state, set_queues, update
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob

GPU = "nvidia.com/gpu"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS_PER_JOB = (1, 1, 2, 4)


class Scene:
    """Full clusters, and queues that always have waiting HyperJobs."""

    def __init__(
        self, *, waiting: int, queues: int, clusters: int, sizes: int, estimates: bool
    ) -> None:
        """Create the scene; with `estimates` each HyperJob has an estimate, in hours."""
        self.chance = random.Random(3)
        self.estimates = estimates
        self.sizes = [8 * (1 + number) for number in range(sizes)]
        self.names = [f"queue-{number:02}" for number in range(queues)]
        self.state = new_state(Settings(lag=timedelta(seconds=30)))
        queues = [
            parse_queue({"metadata": {"name": name}, "spec": {"weight": 1 + number % 5}})
            for number, name in enumerate(self.names)
        ]
        set_queues(self.state, queues)
        self.free: dict[str, Resources] = {
            f"cluster-{number:03}": _resources(256) for number in range(clusters)
        }
        self.whole = dict(self.free)
        self.units: dict[str, QueuedHyperJob] = {}
        self.now = NOW
        self.number = 0
        while len(self.units) < waiting + clusters * 8:
            self.submit()
        self.round()

    def submit(self) -> QueuedHyperJob:
        """Return one more HyperJob, submitted to a queue."""
        self.number += 1
        name, queue = f"job-{self.number}", self.chance.choice(self.names)
        size = self.chance.choice(self.sizes)
        parts = tuple(
            QueuedSubJob(
                queue=queue,
                request=PlacementRequest(name=f"{name}-{i}", group="t", demand=_of(size)),
            )
            for i in range(self.chance.choice(PODS_PER_JOB))
        )
        unit = QueuedHyperJob(
            key=f"ns/{name}",
            created=f"2026-01-01T{self.number:08}",
            priority=self.chance.choice((0, 0, 0, 100)),
            minimum=len(parts),
            parts=parts,
            estimate=timedelta(hours=len(parts) + self.number % 10) if self.estimates else None,
        )
        self.units[unit.key] = unit
        update(self.state, unit.key, unit, now=self.now)
        return unit

    def clusters(self) -> list[Cluster]:
        """Return the clusters with their present use."""
        return [
            Cluster(name=name, usable=True, trouble=None, free=free, allocatable=self.whole[name])
            for name, free in self.free.items()
        ]

    def round(self) -> int:
        """Play a round, and create the admitted sub-jobs."""
        granted = schedule(self.state, self.clusters(), now=self.now).keys
        for key in granted:
            entry = self.state.entries[key]
            spots, names = dict(entry.reserved_clusters), admitted(self.state, key)
            unit = self.units[key]
            for part in unit.parts:
                if part.name in spots:
                    cluster = spots[part.name]
                    self.free[cluster] = subtract(self.free[cluster], part.request.demand)
            since = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            self.units[key] = replace(unit, held=names, made=names, clusters=spots, since=since)
            update(self.state, key, self.units[key], now=self.now)
        return len(granted)

    def told(self) -> int:
        """Return the number of HyperJobs with a stale message."""
        return len(list(stale_messages(self.state, now=self.now)))

    def end_one(self) -> None:
        """End a running HyperJob."""
        running = [unit for unit in self.units.values() if unit.made]
        unit = self.chance.choice(running)
        for part in unit.parts:
            cluster = unit.clusters[part.name]
            self.free[cluster] = total((self.free[cluster], part.request.demand))
        del self.units[unit.key]
        self.now += timedelta(seconds=31)
        update(self.state, unit.key, None, now=self.now)

    def plain(self) -> int:
        """Sort all HyperJobs and try each, as a plain scheduler does at each change."""
        free = total(self.free.values())
        used: dict[str, int] = dict.fromkeys(self.names, 0)
        waiting: list[QueuedHyperJob] = []
        for unit in self.units.values():
            if unit.made:
                used[unit.parts[0].queue] += sum(part.request.demand[GPU] for part in unit.parts)
            else:
                waiting.append(unit)
        waiting.sort(key=lambda unit: (used[unit.parts[0].queue], unit.order))
        found = 0
        for unit in waiting:
            demand = total(part.request.demand for part in unit.parts)
            if fits(demand, free):
                free = subtract(free, demand)
                found += 1
        return found


def measured(
    changes: int, prepare: Callable[[], object], work: Callable[[], object]
) -> list[float]:
    """Return the CPU seconds of each change, ascending."""
    times = []
    for _ in range(changes):
        prepare()
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return sorted(times)


def calls(changes: int, prepare: Callable[[], object], work: Callable[[], object]) -> int:
    """Return how many functions are called in a change, on average."""
    number = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal number
        number += event in {"call", "c_call"}

    for _ in range(changes):
        prepare()
        sys.setprofile(count)
        work()
        sys.setprofile(None)
    return number // changes


def main() -> None:
    """Read arguments, measure, print a line for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--changes", type=int, default=60)
    options = parser.parse_args()
    for sizes, estimates in ((5, False), (50, False), (5, True), (50, True)):
        scene = Scene(
            waiting=options.waiting,
            queues=options.queues,
            clusters=options.clusters,
            sizes=sizes,
            estimates=estimates,
        )
        gc.collect()
        gc.freeze()
        lines = sum(len(scene.state.lines.line(name)) for name in scene.names)
        plain = measured(3, lambda: None, scene.plain)[0]
        print(
            f"{lines} wait in {options.queues} queues, {sizes} sizes,"
            f" {'each' if estimates else 'none'} with an estimate; plain: {plain * 1000:.1f} ms"
        )
        for name, prepare in (("one ends", scene.end_one), ("one comes", scene.submit)):
            times = measured(options.changes, prepare, scene.round)
            median, worst = times[len(times) // 2], times[-1]
            told = measured(1, lambda: None, scene.told)[0]
            called = calls(options.changes // 3, prepare, scene.round)
            print(
                f"  {name}: median {median * 1000:5.1f} ms, worst {worst * 1000:5.1f} ms,"
                f" {plain / median:4.1f} times as fast as plain, {called} calls; who is to be told"
                f" {told * 1000:.1f} ms"
            )


def _of(gpus: int) -> Resources:
    return parse_resources({GPU: str(gpus), "cpu": str(gpus * 8), "pods": str(gpus)})


def _resources(gpus: int) -> Resources:
    return parse_resources({GPU: str(gpus), "cpu": str(gpus * 10), "pods": str(gpus * 40)})


if __name__ == "__main__":
    main()
