"""A storm: 1,000 sub-jobs change phase within a second; when is the status of every HyperJob right?

A bare API server (a real one where KUBEBUILDER_ASSETS says so) and the controller as processes;
this process plays Karmada and writes the status of the vcjobs. Behind a HyperJob's last event its
status may lag; printed is by how much (p50, p99, most), how many status writes each HyperJob took,
and the passes and CPU seconds that the controller spent. The ratio is the storm's length, writes
and status together, to that of writing the same 1,000 statuses to vcjobs that belong to no
HyperJob.
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
from hyperjob.api.meta import Object
from hyperjob.api.names import LABEL_HYPERJOB
from hyperjob.kube.client import EventType, Kube, PatchType
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import HYPERJOBS, NAMESPACES, VCJOBS
from tests.support.controller import set_cluster
from tests.support.controlplane import control_plane
from tests.support.stack import Service, controller_service
from tests.support.system import phase_of

SPREAD = 1.0
CONNECTIONS = 16
TIME_LIMIT = 300.0
OURS, PLAIN = "storm", "plain"


@dataclass(slots=True)
class Watcher:
    """Notes when each HyperJob was as wanted for the first time, and how often it was written."""

    wanted: Callable[[Object], bool] = field(default=lambda _: False)
    right: dict[str, float] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, wanted: Callable[[Object], bool]) -> None:
        """Start anew, with something else to wait for."""
        self.wanted = wanted
        self.right.clear()
        self.writes.clear()

    def __call__(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Look at an event."""
        if new is None:
            return
        name = new["metadata"]["name"]
        self.writes[name] += 1
        if name not in self.right and self.wanted(new):
            self.right[name] = time.monotonic()
        self.changed.set()

    async def until(self, count: int) -> None:
        """Wait until so many are as wanted."""
        async with asyncio.timeout(TIME_LIMIT):
            while len(self.right) < count:
                self.changed.clear()
                await self.changed.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What the controller has done so far, by its own metrics."""

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
    """Make the status of a one-pod vcjob."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pods = {"running": 1} if phase == "Running" else {"succeeded": 1, "running": None}
    return {"state": {"phase": phase, "lastTransitionTime": now}, "minAvailable": 1, **pods}


async def storm(kube: Kube, namespace: str, jobs: Sequence[Object], phase: str) -> dict[str, float]:
    """Write all statuses, spread over a second; give each HyperJob's last event."""
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
    """Make everything, then two storms: all run, all complete."""
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
    # Event by event round the HyperJobs: the worst order for whoever gathers changes.
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
    """Return whether a HyperJob's status says what all its vcjobs say."""
    status = item.get("status") or {}
    if phase_of(item) != phase or status.get("jobsReady") != f"{replicas}/{replicas}":
        return False
    return status.get("runningPods") == (replicas if phase == "Running" else 0)


async def copies(kube: Kube, jobs: Sequence[Object]) -> list[Object]:
    """Copy vcjobs without their owner, so that no controller looks at them."""
    made = []
    for job in jobs:
        copy: Object = {
            "apiVersion": VCJOBS.api_version,
            "kind": VCJOBS.kind,
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
    """Print one storm."""
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
