"""Measure the start of a controller with thousands of running HyperJobs: CPU, memory, writes.

usage: python -m benchmarks.scale_start [--hyperjobs 5000] [--replicas 4] [--clusters 100]

A first controller brings a HyperJob to Running on an API server in memory; the measured controller
lists copies of its objects under other names. The numbers are the controller's alone, without HTTP
and API server. Subtract the memory of this process before the start.
"""

import argparse
import asyncio
import resource
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from benchmarks.bench_expansion import hyperjobs
from benchmarks.bench_storm import vcjob_status
from benchmarks.scale import bound
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import ObjectList
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.fakekube import FakeKube
from tests.support.system import phase_of
from tests.unit.controller.test_pass import member

KINDS = (HYPERJOBS, VCJOBS, PROPAGATION_POLICIES, RESOURCE_BINDINGS)
PAGE = 500


class Copies(FakeKube):
    """Lists each object of a HyperJob many times, under other names."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: dict[Resource, list[bytes]] = {}
        self.count = 0

    async def list(
        self,
        resource: Resource,
        *,
        label_selector: str | None = None,
        transform: Callable[[Object], Object] = lambda obj: obj,
        **_: object,
    ) -> ObjectList:
        items = []
        for text in self.seeds.get(resource, ()):
            for number in range(self.count):
                name = b"copy%05d" % number
                copy = text.replace(b'"hj0', b'"' + name).replace(b"uid-", name + b"-uid-")
                items.append(transform(orjson.loads(copy)))
                if len(items) % PAGE == 0:
                    await asyncio.sleep(0)
        kept = await super().list(resource, label_selector=label_selector, transform=transform)
        return ObjectList([*items, *kept.items], kept.resource_version)

    async def create(self, resource: Resource, obj: Object, **_: object) -> Object:
        answer = await super().create(resource, obj)
        if resource is VCJOBS:
            spec = self.objects[PROPAGATION_POLICIES][key_of(answer)]["spec"]
            (cluster,) = spec["placement"]["clusterAffinities"][0]["clusterNames"]
            namespace = answer["metadata"]["namespace"]
            self.put(RESOURCE_BINDINGS, bound(answer["metadata"], cluster, namespace))
        return answer

    def settled(self, phase: str) -> bool:
        """Return whether all HyperJobs are in `phase`."""
        return {phase_of(each) for each in self.objects[HYPERJOBS].values()} == {phase}


@asynccontextmanager
async def working(kube: FakeKube) -> AsyncIterator[Manager]:
    """Run a controller for the length of the block."""
    options = Options(queue_admission=QueueAdmission.BUILTIN, leader_elect=False)
    manager = Manager(kube, options)  # type: ignore[arg-type]  # has the verbs that are used
    task = asyncio.create_task(manager.run())
    try:
        await manager.working.wait()
        yield manager
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds` is true of a state in memory, which has no event."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def memory() -> float:
    """Return the memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


async def seeded(count: int, replicas: int, clusters: int) -> Copies:
    """Bring a HyperJob to Running; return its objects for copies."""
    kube = Copies()
    for number in range(clusters):
        cluster = member(f"c{number:03}", 10 * count * replicas)
        cluster["status"]["resourceSummary"]["allocatable"]["pods"] = str(10 * count * replicas)
        kube.put(CLUSTERS, cluster)
    kube.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    async with working(kube) as manager:
        kube.put(HYPERJOBS, hyperjobs("many", 1, replicas)[0])
        await until(lambda: len(kube.objects.get(VCJOBS, ())) == replicas)
        for job in list(kube.objects[VCJOBS].values()):
            metadata = {**job["metadata"]}
            kube.put(VCJOBS, {**job, "metadata": metadata, "status": vcjob_status("Running")})
        await until(lambda: kube.settled("Running") and not manager.queue.due_in("many/hj0"))
    for kind in KINDS:
        kube.seeds[kind] = [orjson.dumps(each) for each in kube.objects.pop(kind).values()]
        kube.objects[kind] = {}
    kube.count = count
    kube.calls.clear()
    return kube


async def run(count: int, replicas: int, clusters: int) -> None:
    """Start a controller with all copies, submit another HyperJob, and print the results."""
    kube = await seeded(count, replicas, clusters)
    before, began = memory(), time.process_time()
    async with working(kube) as manager:
        listed = time.process_time() - began
        kube.put(HYPERJOBS, hyperjobs("new", 1, 1)[0])
        await until(lambda: bool(kube.objects[VCJOBS]))
        decided = time.process_time() - began
        await until(lambda: not len(manager.queue))
        looked = time.process_time() - began
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        others = [call for call in kube.calls if not call[2].startswith("hj0")]
        print(
            f"start beside {count * replicas} sub-jobs of {count} HyperJobs, {clusters} clusters:\n"
            f"  CPU until all caches are complete {listed:.1f} s, until the first decision"
            f" {decided:.1f} s, until all are looked at {looked:.1f} s\n"
            f"  memory {before:.0f} MB before, {memory():.0f} MB now, at most {most:.0f} MB\n"
            f"  writes to what was there: {len(others)}"
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hyperjobs", type=int, default=5000)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--clusters", type=int, default=100)
    options = parser.parse_args()
    asyncio.run(run(options.hyperjobs, options.replicas, options.clusters))


if __name__ == "__main__":
    main()
