"""Measure the time from `kubectl apply` to all sub-jobs, and to Running, against a plain client.

Simulated Karmada and members (on a real API server if KUBEBUILDER_ASSETS is set), the webhook and
the controller run as processes. The ratio is the controller's time, including kubectl's, to the
time of a loop that creates the same objects on 8 connections; the optimum is 1.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.plainloop import copies_of, plain_loop
from e2e.support.scenario import phase_of
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    VCJOBS,
    Resource,
)
from tests.support.envtest import kube_apiserver
from tests.support.stack import Stack, kubectl, our_stack, sandbox

CASES = {"1x2": (1, 2), "1x100": (1, 100), "100x4": (100, 4)}
CLUSTERS = """
clusters:
- name: east
  nodes: [{count: 10, allocatable: {cpu: 128, memory: 1Ti, pods: 1000, nvidia.com/gpu: 100}}]
- name: west
  nodes: [{count: 10, allocatable: {cpu: 128, memory: 1Ti, pods: 1000, nvidia.com/gpu: 100}}]
runTimes: {defaultSeconds: 3600}
volcanoGlobal: {enabled: true}
"""
TIME_LIMIT = 300.0
CHILDREN = (PROPAGATION_POLICIES, VCJOBS)


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds since the start of kubectl; `calls` are the controller's requests, by method."""

    case: str
    applied: float
    children: float
    running: float
    plain: float
    calls: Counter[str]

    def line(self) -> str:
        """Return the result as a line of text."""
        calls = ", ".join(f"{count} {method}" for method, count in sorted(self.calls.items()))
        return (
            f"{self.case:>6}  apply {self.applied:6.2f} s  children {self.children:6.2f} s  "
            f"Running {self.running:6.2f} s  plain loop {self.plain:6.2f} s  "
            f"ratio {self.children / self.plain:5.2f}  ({calls})"
        )


def hyperjobs(namespace: str, count: int, replicas: int) -> list[Object]:
    """Return HyperJobs of one-pod sub-jobs."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"nvidia.com/gpu": 1}}}
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    group = {"name": "t", "replicas": replicas, "templateSpec": {"tasks": [task]}}
    return [
        {
            **HYPERJOBS.head,
            "metadata": {"name": f"hj{number}", "namespace": namespace},
            "spec": {"replicatedJobs": [group]},
        }
        for number in range(count)
    ]


class Clock:
    """Records the times at which objects of each kind first exist, or first have a phase."""

    def __init__(self, kube: Kube, namespace: str, *resources: Resource) -> None:
        self._informers = {each: Informer(kube, each, namespace=namespace) for each in resources}
        self._changed = asyncio.Event()
        for informer in self._informers.values():
            informer.add_handler(lambda *_: self._changed.set())
        self._tasks = [asyncio.create_task(each.run()) for each in self._informers.values()]

    async def synced(self) -> None:
        """Wait until the informers have synced."""
        for informer in self._informers.values():
            await informer.synced.wait()

    async def until(self, count: int, resources: Sequence[Resource], phase: str = "") -> float:
        """Wait for `count` objects of each kind (in a phase); return the time."""
        async with asyncio.timeout(TIME_LIMIT):
            while not all(self._count(each, phase) >= count for each in resources):
                self._changed.clear()
                await self._changed.wait()
        return time.monotonic()

    def _count(self, resource: Resource, phase: str) -> int:
        items = self._informers[resource].items()
        return sum(phase_of(item) == phase for item in items) if phase else len(items)

    async def stop(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def measure(system: Stack, kube: Kube, case: str) -> Result:
    """Measure a case in separate namespaces."""
    count, replicas = CASES[case]
    ours, plain = f"bench-{case}", f"plain-{case}"
    for name in (ours, plain):
        await kube.create(NAMESPACES, {"metadata": {"name": name}})
    before = controller_calls(system)
    clock = Clock(kube, ours, HYPERJOBS, *CHILDREN)
    await clock.synced()
    text = yaml.safe_dump_all(hyperjobs(ours, count, replicas))
    start = time.monotonic()

    async def apply() -> float:
        await asyncio.to_thread(
            kubectl, system.kubeconfig, "apply", "-f", "-", stdin=text, timeout=TIME_LIMIT
        )
        return time.monotonic()

    applied, children, running = await asyncio.gather(
        apply(),
        clock.until(count * replicas, CHILDREN),
        clock.until(count, [HYPERJOBS], "Running"),
    )
    await clock.stop()
    calls = controller_calls(system) - before
    copies = await copies_of(kube, ours, kinds=CHILDREN)
    seconds, _ = await plain_loop(kube, copies, plain)
    for name in (ours, plain):
        await delete_all(kube, name)
    return Result(case, applied - start, children - start, running - start, seconds, calls)


async def delete_all(kube: Kube, namespace: str) -> None:
    """Delete the objects of a case and wait for their deletion, before the next case.

    The function repeats the deletion: the controller may recreate a sub-job before it sees the
    deletion of the HyperJob, and a bare API server has no garbage collector.
    """
    async with asyncio.timeout(TIME_LIMIT):
        left = True
        while left:
            for resource in (HYPERJOBS, *CHILDREN):
                await kube.raw("DELETE", resource.path(namespace))
            await asyncio.sleep(0.5)
            left = any([(await kube.list(each, namespace=namespace)).items for each in CHILDREN])


def controller_calls(system: Stack) -> Counter[str]:
    """Read the controller's own count of its requests, by method."""
    calls: Counter[str] = Counter()
    for family in text_string_to_metric_families(system.controller.metrics()):
        for sample in family.samples:
            if sample.name == "rest_client_requests_total":
                calls[sample.labels["method"]] += int(sample.value)
    return calls


async def run(cases: Sequence[str]) -> None:
    """Measure the cases one after the other on one system."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    print("real kube-apiserver" if assets else "embedded API server")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        (folder / "clusters.yaml").write_text(CLUSTERS)
        real = stack.enter_context(kube_apiserver(Path(assets), folder / "api")) if assets else None
        kubeconfig, _ = stack.enter_context(
            sandbox(folder / "sandbox", folder / "clusters.yaml", kubeconfig=real)
        )
        system = stack.enter_context(
            our_stack(folder / "ours", kubeconfig, queue_admission="volcano-global")
        )
        async with Kube.connect(kubeconfig=kubeconfig, user_agent="hyperjob-bench") as kube:
            for case in cases:
                print((await measure(system, kube, case)).line(), flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    asyncio.run(run(parser.parse_args().cases or list(CASES)))


if __name__ == "__main__":
    main()
