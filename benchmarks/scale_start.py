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
from e2e.support.scenario import phase_of
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.memory import Call
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
from tests.support.apiserver import ApiServer
from tests.support.queues import due_in
from tests.unit.controller.test_pass import member

KINDS = (HYPERJOBS, VCJOBS, PROPAGATION_POLICIES, RESOURCE_BINDINGS)
PAGE = 500
UID_END = b"0" * 12


class Copies(ApiServer):
    """Lists each object of a HyperJob many times, under other names."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: dict[Resource, list[bytes]] = {}
        self.count = 0

    def answer(self, call: Call) -> Object:
        """Answer a list of copies page by page, as an API server does; bind each new vcjob."""
        answer: Object = super().answer(call)
        if call.method == "POST" and call.resource is VCJOBS:
            self._bind(answer)
        if call.method == "GET" and not call.name:
            begin = int(call.params.get("continue") or 0)
            pages = self._copies(self.seeds.get(call.resource, []), begin)
            if len(pages) == PAGE:
                token = {"continue": str(begin + PAGE)}
                return {"metadata": {**answer["metadata"], **token}, "items": pages}
            answer["items"] += pages
        return answer

    def _copies(self, seeds: list[bytes], begin: int) -> list[orjson.Fragment]:
        found = []
        for place in range(begin, min(begin + PAGE, len(seeds) * self.count)):
            number = place % self.count
            copy = seeds[place // self.count].replace(b'"hj0', b'"copy%05d' % number)
            found.append(orjson.Fragment(copy.replace(UID_END, b"%012d" % number)))
        return found

    def _bind(self, job: Object) -> None:
        policy = self.get(PROPAGATION_POLICIES, key_of(job))
        assert policy is not None
        namespace = job["metadata"]["namespace"]
        self.put(RESOURCE_BINDINGS, bound(job["metadata"], policy["spec"], namespace))

    def settled(self, phase: str) -> bool:
        """Return whether all HyperJobs are in `phase`."""
        return {phase_of(each) for each in self.items(HYPERJOBS)} == {phase}


@asynccontextmanager
async def working(server: ApiServer) -> AsyncIterator[Manager]:
    """Run a controller for the length of the block."""
    options = Options(queue_admission=QueueAdmission.BUILTIN, leader_elect=False)
    manager = Manager(server.kube, options)
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
    server = Copies()
    for number in range(clusters):
        cluster = member(f"c{number:03}", 10 * count * replicas)
        cluster["status"]["resourceSummary"]["allocatable"]["pods"] = str(10 * count * replicas)
        server.put(CLUSTERS, cluster)
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    async with working(server) as manager:
        server.put(HYPERJOBS, hyperjobs("many", 1, replicas)[0])
        await until(lambda: len(server.items(VCJOBS)) == replicas)
        for job in server.items(VCJOBS):
            metadata = {**job["metadata"]}
            server.put(VCJOBS, {**job, "metadata": metadata, "status": vcjob_status("Running")})
        await until(lambda: server.settled("Running") and not due_in(manager.queue, "many/hj0"))
    for kind in KINDS:
        server.seeds[kind] = [orjson.dumps(each) for each in server.items(kind)]
    for each in server.items(HYPERJOBS):
        server.remove(HYPERJOBS, key_of(each))
    server.count = count
    server.calls.clear()
    return server


async def run(count: int, replicas: int, clusters: int) -> None:
    """Start a controller with all copies, submit another HyperJob, and print the results."""
    server = await seeded(count, replicas, clusters)
    before, began = memory(), time.process_time()
    async with working(server) as manager:
        listed = time.process_time() - began
        server.put(HYPERJOBS, hyperjobs("new", 1, 1)[0])
        await until(lambda: bool(server.items(VCJOBS)))
        decided = time.process_time() - began
        await until(lambda: not len(manager.queue))
        looked = time.process_time() - began
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        others = [call for call in server.calls if not call[2].startswith("hj0")]
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
