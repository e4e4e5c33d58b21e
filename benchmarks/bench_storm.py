"""Measure a storm: 1,000 sub-jobs change phase within a second, until all statuses are right.

A bare API server (a real one if KUBEBUILDER_ASSETS is set) and the controller run as processes;
this process simulates Karmada and writes the status of the vcjobs. The output is the lag of a
HyperJob's status after the last change of its vcjobs (p50, p99, maximum), the status writes of
each HyperJob, and the reconciliations and CPU seconds of the controller. The ratio is the length
of the storm to the time of writing the same 1,000 statuses to vcjobs without a HyperJob.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.bench_expansion import hyperjobs
from e2e.support.scenario import phase_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, NAMESPACES, VCJOBS
from tests.support.controller import set_cluster
from tests.support.controlplane import control_plane
from tests.support.stack import Service, controller_service

SPREAD = 1.0
CONNECTIONS = 16
TIME_LIMIT = 300.0
OURS, PLAIN = "storm", "plain"


@dataclass(slots=True)
class Watcher:
    """Records when each HyperJob first has the wanted status, and its number of writes."""

    wanted: Callable[[Object], bool] = field(default=lambda _: False)
    right: dict[str, float] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, wanted: Callable[[Object], bool]) -> None:
        """Reset, with another wanted status."""
        self.wanted = wanted
        self.right.clear()
        self.writes.clear()

    def __call__(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Handle a watch event."""
        if new is None:
            return
        name = new["metadata"]["name"]
        self.writes[name] += 1
        if name not in self.right and self.wanted(new):
            self.right[name] = time.monotonic()
        self.changed.set()

    async def until(self, count: int) -> None:
        """Wait until `count` HyperJobs have the wanted status."""
        async with asyncio.timeout(TIME_LIMIT):
            while len(self.right) < count:
                self.changed.clear()
                await self.changed.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The work of the controller so far, by its own metrics."""

    passes: float
    cpu: float

    @classmethod
    def of(cls, controller: Service) -> Self:
        """Read its metrics."""
        sums: defaultdict[str, float] = defaultdict(float)
        for family in text_string_to_metric_families(controller.metrics()):
            for sample in family.samples:
                sums[sample.name] += sample.value
        return cls(
            passes=sums["controller_runtime_reconcile_total"],
            cpu=sums["process_cpu_seconds_total"],
        )

    def __sub__(self, other: Self) -> Self:
        return replace(self, passes=self.passes - other.passes, cpu=self.cpu - other.cpu)


def vcjob_status(phase: str) -> Object:
    """Return the status of a one-pod vcjob."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pods = {"running": 1} if phase == "Running" else {"succeeded": 1, "running": None}
    return {"state": {"phase": phase, "lastTransitionTime": now}, "minAvailable": 1, **pods}


async def storm(kube: Kube, namespace: str, jobs: Sequence[Object], phase: str) -> dict[str, float]:
    """Write all statuses within a second; return the time of each HyperJob's last change."""
    start = time.monotonic()
    waiting = list(enumerate(jobs))
    last: dict[str, float] = {}

    async def work() -> None:
        while waiting:
            number, job = waiting.pop(0)
            await asyncio.sleep(start + SPREAD * number / len(jobs) - time.monotonic())
            await kube.patch(
                VCJOBS,
                job["metadata"]["name"],
                {"status": vcjob_status(phase)},
                kind=PatchType.MERGE,
                namespace=namespace,
                subresource="status",
            )
            owner = (job["metadata"].get("labels") or {}).get(LABEL_HYPERJOB, "")
            last[owner] = time.monotonic()

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(work())
    return last


async def measure(kube: Kube, controller: Service, count: int, replicas: int) -> None:
    """Create the objects, then run two storms: all sub-jobs run, all complete."""
    for name in (OURS, PLAIN):
        await kube.create(NAMESPACES, {"metadata": {"name": name}})
    await set_cluster(kube, "east", 10 * count * replicas)
    watcher = Watcher()
    watching = Informer(kube, HYPERJOBS, namespace=OURS)
    watching.add_handler(watcher)
    task = asyncio.create_task(watching.run())
    await watching.synced.wait()
    watcher.expect(lambda item: len((item.get("status") or {}).get("jobs") or ()) == replicas)
    for item in hyperjobs(OURS, count, replicas):
        await kube.create(HYPERJOBS, item)
    await watcher.until(count)
    jobs: list[Object] = []
    async with asyncio.timeout(TIME_LIMIT):
        while len(jobs) < count * replicas:
            await asyncio.sleep(0.5)
            jobs = (await kube.list(VCJOBS, namespace=OURS)).items
    # One write for each HyperJob in turn: the worst order for a controller that batches changes.
    jobs.sort(key=lambda job: job["metadata"]["name"].rsplit("-", 1)[::-1])
    plain = await copies(kube, jobs)
    for phase in ("Running", "Completed"):
        watcher.expect(lambda item, phase=phase: is_right(item, phase, replicas))
        before = Effort.of(controller)
        began = time.monotonic()
        last = await storm(kube, OURS, jobs, phase)
        await watcher.until(count)
        took = time.monotonic() - began
        effort = Effort.of(controller) - before
        began = time.monotonic()
        await storm(kube, PLAIN, plain, phase)
        report(phase, watcher, last, took, took / (time.monotonic() - began), effort)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def is_right(item: Object, phase: str, replicas: int) -> bool:
    """Return whether a HyperJob's status agrees with all its vcjobs."""
    status = item.get("status") or {}
    if phase_of(item) != phase or status.get("jobsReady") != f"{replicas}/{replicas}":
        return False
    return status.get("runningPods") == (replicas if phase == "Running" else 0)


async def copies(kube: Kube, jobs: Sequence[Object]) -> list[Object]:
    """Create copies of vcjobs without owner, which no controller reconciles."""
    made = []
    for job in jobs:
        copy: Object = {
            **VCJOBS.head,
            "metadata": {"name": job["metadata"]["name"], "namespace": PLAIN},
            "spec": job["spec"],
        }
        made.append(await kube.create(VCJOBS, copy))
    return made


def report(
    phase: str,
    watcher: Watcher,
    last: dict[str, float],
    took: float,
    ratio: float,
    effort: Effort,
) -> None:
    """Print the results of a storm."""
    lags = sorted(max(0.0, watcher.right[name] - moment) for name, moment in last.items())
    p99 = statistics.quantiles(lags, n=100, method="inclusive")[98] if len(lags) > 1 else lags[0]
    writes = sorted(watcher.writes.values())
    print(
        f"{phase:>9}  lag p50 {statistics.median(lags):.3f} s  p99 {p99:.3f} s  most {lags[-1]:.3f}"
        f" s  status writes a HyperJob: mean {statistics.mean(writes):.1f}, most {writes[-1]}"
        f" in {took:.1f} s"
        f"  ratio {ratio:.2f}  controller: {effort.passes:.0f} passes, {effort.cpu:.2f} CPU s",
        flush=True,
    )


async def run(count: int, replicas: int) -> None:
    """Start an API server and a controller, and measure."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name, control_plane(Path(name)) as plane:
        controller = controller_service(Path(name), plane.kubeconfig, queue_admission="none")
        try:
            controller.start()
            print("real kube-apiserver" if plane.real else "embedded API server")
            async with Kube.connect(kubeconfig=plane.kubeconfig, user_agent="bench") as kube:
                await measure(kube, controller, count, replicas)
        finally:
            controller.stop()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hyperjobs", type=int, default=100)
    parser.add_argument("--sub-jobs", type=int, default=10, help="of each HyperJob")
    given = parser.parse_args()
    asyncio.run(run(given.hyperjobs, given.sub_jobs))


if __name__ == "__main__":
    main()
