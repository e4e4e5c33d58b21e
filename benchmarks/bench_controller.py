"""How fast HyperJobs become children and run, next to a plain client that makes the same objects.

usage: python benchmarks/bench_controller.py [--shapes 1x2,1x100,100x4] [--no-run]

API server (with Karmada and members), controller and client are separate processes, as in life.
`created`: from the first create request to the last child seen by a watch. `plain`: the same
objects created by a bare client with as many requests in flight. `running`: to all of them Running.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from controller.expansion.expand import expand, sub_jobs
from controller.expansion.objects import policy, vcjob
from controller.model.parse import parse_hyperjob
from hyperjob.api.schema import hyperjob_crd
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import (
    CRDS,
    HYPERJOBS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    VCJOBS,
    Resource,
)
from hyperjob.sandbox.clusters import SandboxConfig
from hyperjob.sandbox.topology import Topology

Object = dict[str, Any]
IN_FLIGHT = 50
TIME_LIMIT = 300.0
CONFIG: Object = {
    "clusters": [
        {
            "name": name,
            "nodes": [
                {"count": 64, "allocatable": {"cpu": 512, "memory": "1Ti", "nvidia.com/gpu": 64}}
            ],
        }
        for name in ("left", "right")
    ],
    "runTimes": {"defaultSeconds": 3600.0},
    "volcanoGlobal": {"enabled": False},
    "karmada": {"clusterStatusSeconds": 2.0},
}


def hyperjob(namespace: str, name: str, replicas: int) -> Object:
    """Build a HyperJob of so many sub-jobs of two pods with one GPU each."""
    resources = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    pod = {"spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]}}
    tasks = [{"name": "worker", "replicas": 2, "minAvailable": 2, "maxRetry": 3, "template": pod}]
    template = {
        "minAvailable": 2,
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "tasks": tasks,
    }
    group = {"name": "trainer", "replicas": replicas, "templateSpec": template}
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicatedJobs": [group]},
    }


def serve(directory: Path, ready: Connection) -> None:
    """Run the sandbox until killed."""

    async def run() -> None:
        async with Topology(SandboxConfig.model_validate(CONFIG), directory) as topology:
            ready.send(str(topology.kubeconfig))
            await topology.failure()

    asyncio.run(run())


@contextlib.contextmanager
def sandbox(directory: Path) -> Iterator[Path]:
    """Give the kubeconfig of a sandbox in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(directory, there))
    process.start()
    try:
        if not here.poll(60):
            raise TimeoutError("the sandbox does not start")
        yield Path(here.recv())
    finally:
        process.terminate()
        process.join(10)


@contextlib.contextmanager
def controller(kubeconfig: Path, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the controller process."""
    log = directory / "controller.log"
    command = [
        *(sys.executable, "-m", "controller", f"--kubeconfig={kubeconfig}"),
        *("--queue-admission=none", "--no-leader-elect", "--log-format=text"),
        *("--metrics-bind-address=0", "--health-probe-bind-address=0"),
    ]
    with log.open("wb") as out, subprocess.Popen(command, stderr=out) as process:
        try:
            while "Caches are complete" not in log.read_text():
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            process.wait(10)


class Progress:
    """What a watch has seen of one resource."""

    def __init__(self, kube: Kube, resource: Resource) -> None:
        self.informer = Informer(kube, resource)
        self.informer.add_handler(self._changed)
        self.created: dict[str, int] = {}
        self.running: dict[str, int] = {}
        self.changed = asyncio.Event()

    def _changed(self, kind: EventType, _: Object | None, new: Object | None) -> None:
        if new is None:
            return
        namespace = new["metadata"]["namespace"]
        if kind is EventType.ADDED:
            self.created[namespace] = self.created.get(namespace, 0) + 1
        self.running[namespace] = sum(
            item.get("status", {}).get("state", {}).get("phase") == "Running"
            for item in self.informer.items()
            if item["metadata"]["namespace"] == namespace
        )
        self.changed.set()

    async def reach(self, field: str, namespace: str, number: int) -> None:
        """Wait for a number of objects."""
        async with asyncio.timeout(TIME_LIMIT):
            while getattr(self, field).get(namespace, 0) < number:
                self.changed.clear()
                await self.changed.wait()


@contextlib.asynccontextmanager
async def watching(kube: Kube) -> AsyncIterator[dict[Resource, Progress]]:
    """Follow HyperJobs and their children."""
    found = {res: Progress(kube, res) for res in (HYPERJOBS, VCJOBS, PROPAGATION_POLICIES)}
    tasks = [asyncio.create_task(item.informer.run()) for item in found.values()]
    try:
        for item in found.values():
            await item.informer.synced.wait()
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def create_all(kube: Kube, documents: list[tuple[Resource, Object]]) -> None:
    """Create objects, so many requests in flight as the controller has."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(resource: Resource, document: Object) -> None:
        async with slots:
            await kube.create(resource, document)

    async with asyncio.TaskGroup() as group:
        for resource, document in documents:
            group.create_task(one(resource, document))


async def namespace_for(kube: Kube, name: str) -> str:
    """Make a namespace that Karmada leaves alone."""
    labels = {"namespace.karmada.io/skip-auto-propagation": "false"}
    metadata = {"name": name, "labels": labels}
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return name


async def plain(kube: Kube, seen: dict[Resource, Progress], jobs: int, replicas: int) -> float:
    """Create the children that the controller would, from prepared documents."""
    namespace = await namespace_for(kube, f"plain-{jobs}x{replicas}")
    documents: list[tuple[Resource, Object]] = []
    for number in range(jobs):
        raw = hyperjob(namespace, f"hj{number}", replicas)
        raw["metadata"]["uid"] = f"00000000-0000-0000-0000-{number:012}"
        parsed = parse_hyperjob(raw)
        for sub_job in sub_jobs(parsed, expand(parsed), {"trainer": range(replicas)}):
            made = policy(parsed, sub_job, "nowhere", gated=False, held=False)
            made["metadata"].pop("ownerReferences")
            child = vcjob(parsed, sub_job)
            child["metadata"].pop("ownerReferences")
            documents += [(PROPAGATION_POLICIES, made), (VCJOBS, child)]
    started = time.perf_counter()
    await create_all(kube, documents)
    for resource in (VCJOBS, PROPAGATION_POLICIES):
        await seen[resource].reach("created", namespace, jobs * replicas)
    took = time.perf_counter() - started
    for resource in (VCJOBS, PROPAGATION_POLICIES):
        for item in (await kube.list(resource, namespace=namespace)).items:
            await kube.delete(resource, item["metadata"]["name"], namespace=namespace)
    return took


async def measure(
    kube: Kube, seen: dict[Resource, Progress], jobs: int, replicas: int, *, run: bool
) -> tuple[float, float]:
    """Return the seconds until all children are created, and until all HyperJobs run."""
    namespace = await namespace_for(kube, f"ours-{jobs}x{replicas}")
    documents = [(HYPERJOBS, hyperjob(namespace, f"hj{i}", replicas)) for i in range(jobs)]
    started = time.perf_counter()
    await create_all(kube, documents)
    for resource in (VCJOBS, PROPAGATION_POLICIES):
        await seen[resource].reach("created", namespace, jobs * replicas)
    created = time.perf_counter() - started
    running = 0.0
    if run:
        await seen[HYPERJOBS].reach("running", namespace, jobs)
        running = time.perf_counter() - started
    for item in (await kube.list(HYPERJOBS, namespace=namespace)).items:
        await kube.delete(HYPERJOBS, item["metadata"]["name"], namespace=namespace)
    return created, running


async def client(kubeconfig: Path, directory: Path, shapes: list[str], *, run: bool) -> None:
    """Measure every shape and print a line for each."""
    async with Kube.connect(kubeconfig=kubeconfig, user_agent="bench") as kube:
        with contextlib.suppress(Exception):
            await kube.create(CRDS, hyperjob_crd())
        with controller(kubeconfig, directory) as process:
            async with watching(kube) as seen:
                for shape in shapes:
                    jobs, replicas = map(int, shape.split("x"))
                    base = await plain(kube, seen, jobs, replicas)
                    before = cpu(process.pid)
                    created, running = await measure(kube, seen, jobs, replicas, run=run)
                    spent = cpu(process.pid) - before
                    print(
                        f"{shape:>8}  created {created:7.3f} s  plain {base:7.3f} s"
                        f"  ratio {base / created:5.2f}  cpu {spent:6.2f} s"
                        + (f"  running {running:7.3f} s" if run else "")
                    )
            print(f"controller: {memory(process.pid)}")


def cpu(pid: int) -> float:
    """Return the CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> str:
    """Return the peak resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return f"peak {int(found[1]) // 1024} MiB" if found else "peak unknown"


def main() -> None:
    """Read arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shapes", default="1x2,1x100,100x4")
    parser.add_argument("--no-run", action="store_true", help="do not wait for Running")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        with sandbox(directory / "sandbox") as kubeconfig:
            shapes = options.shapes.split(",")
            asyncio.run(client(kubeconfig, directory, shapes, run=not options.no_run))


if __name__ == "__main__":
    main()
