"""Measure this controller beside another one of the same API, in turns, on one bare kube-apiserver.

HyperJobs are created at once; printed are the seconds until each sub-job has its vcjob and its
PropagationPolicy, and the controller's CPU for each sub-job, until it rests. Each turn has an API
server of its own. `--other` is the command of the other controller, with `{kubeconfig}` in it.
"""

import argparse
import asyncio
import contextlib
import os
import shlex
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.bench_expansion import hyperjobs
from benchmarks.flood import usage
from benchmarks.plainloop import parallel
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    VCJOBS,
)
from hyperjob_core.tasks import cancel
from tests.support.embedded import crd_files
from tests.support.envtest import kube_apiserver
from tests.support.processes import running
from tests.support.stack import controller_service, installed

NAMESPACE = "default"
TIME_LIMIT = 300.0
CHILDREN = (VCJOBS, PROPAGATION_POLICIES)
AMOUNTS = {"cpu": "100k", "memory": "1000Ti", "nvidia.com/gpu": "100k", "pods": "100k"}
STATUS: Object = {
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "ClusterReady",
            "message": "for a benchmark",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
    "apiEnablements": [
        {"groupVersion": VCJOBS.api_version, "resources": [{"name": "jobs", "kind": "Job"}]}
    ],
    "nodeSummary": {"totalNum": 500, "readyNum": 500},
    "resourceSummary": {"allocatable": AMOUNTS, "allocated": {}},
}


@contextlib.contextmanager
def controller(folder: Path, kubeconfig: Path, other: str) -> Iterator[int]:
    """Run this controller, or another one by its command; yield its process id."""
    if other:
        command = shlex.split(other.format(kubeconfig=kubeconfig))
        with running(command, log=folder / "other.log") as process:
            yield process.pid
        return
    flags = ["--members=off"]
    ours = controller_service(folder, kubeconfig, queue_admission="none", more=flags)
    ours.start()
    try:
        assert ours.process is not None
        yield ours.process.pid
    finally:
        ours.stop()


async def at_rest(process: int) -> float:
    """Wait for two seconds with less than 2 % of a core; return the CPU seconds of a process."""
    while True:
        before = usage(process).cpu
        await asyncio.sleep(2)
        if usage(process).cpu - before < 0.04:
            return usage(process).cpu


async def turn(kube: Kube, process: int, count: int, replicas: int) -> tuple[float, float]:
    """Return the seconds until all objects are there, and the CPU milliseconds per sub-job."""
    informers = [Informer(kube, each) for each in CHILDREN]
    changed = asyncio.Event()
    for each in informers:
        each.add_handler(lambda *_: changed.set())
    tasks = [asyncio.create_task(each.run()) for each in informers]
    try:
        for each in informers:
            await each.synced.wait()
        before, began = await at_rest(process), time.monotonic()
        create = partial(kube.create, HYPERJOBS)
        await parallel(hyperjobs(NAMESPACE, count, replicas), create)
        async with asyncio.timeout(TIME_LIMIT):
            while any(len(list(each.items())) < count * replicas for each in informers):
                changed.clear()
                await changed.wait()
        took = time.monotonic() - began
        return took, 1000 * (await at_rest(process) - before) / (count * replicas)
    finally:
        await cancel(tasks)


async def measure(assets: Path, other: str, count: int, replicas: int) -> tuple[float, float]:
    """Measure one turn on an API server of its own."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        kubeconfig = stack.enter_context(kube_apiserver(assets, folder / "api"))
        stack.enter_context(installed(kubeconfig, crd_files()))
        async with Kube.connect(kubeconfig=kubeconfig, user_agent="hyperjob-bench") as kube:
            for name in ("east", "west"):
                cluster = {
                    **CLUSTERS.head,
                    "metadata": {"name": name},
                    "spec": {"syncMode": "Push"},
                }
                await kube.create(CLUSTERS, cluster)
                body = {"status": STATUS}
                await kube.patch(CLUSTERS, name, body, kind=PatchType.MERGE, subresource="status")
            process = stack.enter_context(controller(folder, kubeconfig, other))
            return await turn(kube, process, count, replicas)


async def run(other: str, sizes: Sequence[str], rounds: int) -> None:
    """Measure all sizes, both controllers in turns, and print the medians and their ratios."""
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    for size in sizes:
        count, replicas = map(int, size.split("x"))
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(rounds):
            for name, command in (("ours", ""), ("other", other)) if other else (("ours", ""),):
                found.setdefault(name, []).append(await measure(assets, command, count, replicas))
                seconds, cost = found[name][-1]
                print(f"{size:>7} {name:>5}: {seconds:6.2f} s, {cost:5.2f} ms of CPU", flush=True)
        if other:
            ours, theirs = (
                list(map(statistics.median, zip(*each, strict=True))) for each in found.values()
            )
            ratios = [mine / rival for mine, rival in zip(ours, theirs, strict=True)]
            print(f"{size:>7} ratio: {ratios[0]:.2f} of the time, {ratios[1]:.2f} of the CPU")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["100x4"], help="HyperJobs x sub-jobs")
    parser.add_argument("--other", default="", help="command of the other controller")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(run(given.other, given.sizes, given.rounds))


if __name__ == "__main__":
    main()
