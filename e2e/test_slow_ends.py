"""Two tenants whose pods ignore SIGTERM: no queue ever holds more GPUs than its share.

Pods are processes of this machine. HYPERJOB_SLOW_SECONDS is how long the tenants go on (20 s by
default), HYPERJOB_CHAOS_SEED what they do. `pytest -rP` shows the most GPUs of each queue.
"""

import asyncio
import contextlib
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import yaml

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob.install.interpreters import interpreters
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, PatchType
from hyperjob_core.kube.errors import Conflict, NotFound
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, PODS
from tests.support.stack import kubectl

SECONDS = float(os.environ.get("HYPERJOB_SLOW_SECONDS", "20"))
SEED = int(os.environ.get("HYPERJOB_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
GPU = "nvidia.com/gpu"
SHARE = 4
TENANTS = ("ann", "ben")
MOST = 6
"""HyperJobs of a tenant at a time."""
NODE = {"name": "gpu", "count": 1, "allocatable": {"cpu": 100, "memory": "100Gi", GPU: 8}}
CLUSTERS = {
    "pods": "processes",
    "clusters": [{"name": name, "nodes": [NODE]} for name in ("east", "west")],
    "volcanoGlobal": {"enabled": False},
    "karmada": {"clusterStatusSeconds": 0.5, "clusterFailureSeconds": 5},
}

pytestmark = pytest.mark.timeout(600 + 2 * SECONDS)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield two clusters with 16 GPUs, whose pods are processes."""
    settings, directory = from_environment(), tmp_path_factory.mktemp("slow")
    if not settings.embedded:
        pytest.skip("the pods of a Karmada at hand end when their nodes say so")
    file: Path = directory / "clusters.yaml"
    file.write_text(yaml.safe_dump(CLUSTERS))
    with open_world(settings, directory, clusters=file, queue_admission="builtin") as opened:
        scripts = yaml.safe_dump_all([item.object for item in interpreters()])
        kubectl(opened.kubeconfig, "apply", "-f", "-", stdin=scripts)
        yield opened


@dataclass(slots=True)
class Held:
    """The GPUs that running pods of each tenant hold now, and the most that they ever held."""

    now: dict[str, tuple[str, int]] = field(default_factory=dict)
    most: Counter[str] = field(default_factory=Counter)
    slow: int = 0

    def saw(self, member: str, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record a pod of a member; a pod that is being deleted holds its GPUs until it ends."""
        obj = new or old or {}
        name, phase = obj["metadata"]["name"], (obj.get("status") or {}).get("phase")
        if kind is EventType.DELETED or phase != "Running":
            self.now.pop(f"{member}/{name}", None)
            return
        limits = obj["spec"]["containers"][0]["resources"]["limits"]
        self.now[f"{member}/{name}"] = name.partition("-")[0], int(limits[GPU])
        self.slow += "deletionTimestamp" in obj["metadata"] and (
            "deletionTimestamp" not in (old or obj)["metadata"]
        )
        held = Counter[str]()
        for tenant, number in self.now.values():
            held[tenant] += number
        self.most |= held


@contextlib.asynccontextmanager
async def watched(scenario: Scenario) -> "contextlib.AsyncIterator[Held]":
    """Watch the pods of all members for the length of the block."""
    held, informers = Held(), []
    for member, kube in scenario.members.items():
        informer = Informer(kube, PODS, namespace=scenario.namespace)
        informer.add_handler(partial(held.saw, member))
        informers.append(informer)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(informer.synced.wait() for informer in informers))
        yield held
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class Tenant:
    """Creates, deletes, suspends, restarts HyperJobs at random; most pods end slowly."""

    scenario: Scenario
    name: str
    queue: str
    rng: random.Random
    number: int = 0
    mine: list[str] = field(default_factory=list)

    async def run(self, until: float) -> None:
        """Go on until a time."""
        while time.monotonic() < until:
            await self._act()
            await asyncio.sleep(self.rng.uniform(0.1, 0.8))

    async def _act(self) -> None:
        if len(self.mine) < MOST and self.rng.random() < 0.6:
            await self._create()
            return
        if not self.mine:
            return
        name, kube = self.rng.choice(self.mine), self.scenario.kube
        with contextlib.suppress(NotFound, Conflict):
            match self.rng.randrange(4):
                case 0 | 1:
                    self.mine.remove(name)
                    await kube.delete(HYPERJOBS, name, namespace=self.scenario.namespace)
                case 2:
                    await self._patch(name, {"spec": {"suspend": self.rng.random() < 0.5}})
                case _:
                    token = f"t{self.rng.randrange(1000)}"
                    marks = {"training.volcano.sh/restart": token}
                    await self._patch(name, {"metadata": {"annotations": marks}})

    async def _patch(self, name: str, body: Object) -> None:
        await self.scenario.kube.patch(
            HYPERJOBS, name, body, kind=PatchType.MERGE, namespace=self.scenario.namespace
        )

    async def _create(self) -> None:
        rng, name = self.rng, f"{self.name}-{self.number}"
        self.number += 1
        pods = rng.choice((1, 2))
        made = group(
            self.scenario.world,
            "g",
            replicas=rng.choice((1, 2)),
            pods=pods,
            accelerators=1,
            queue=self.queue,
        )
        template = made["templateSpec"]
        if pods == 2 and rng.random() < 0.4:
            template["minSuccess"] = 1
        spec = template["tasks"][0]["template"]["spec"]
        spec["terminationGracePeriodSeconds"] = rng.choice((0, 2, 5, 8))
        ignores = "trap '' TERM; " if rng.random() < 0.7 else ""
        # The second pod outlives the first one: with minSuccess 1 its vcjob ends before.
        lasts = f"sleep $((1 + 5 * (${{HOSTNAME##*-}} % 2) + {rng.randrange(5)}))"
        spec["containers"][0]["command"] = ["sh", "-c", f"{ignores}{lasts}"]
        body = hyperjob(name, made, ttlSecondsAfterFinished=1)
        body["metadata"]["namespace"] = self.scenario.namespace
        await self.scenario.kube.create(HYPERJOBS, body, namespace=self.scenario.namespace)
        self.mine.append(name)


async def test_pods_that_end_slowly_hold_the_share_of_their_queue(scenario: Scenario) -> None:
    limit = {GPU: str(SHARE)}
    async with (
        scenario.queue("-ann", capability=limit) as first,
        scenario.queue("-ben", capability=limit) as second,
        watched(scenario) as held,
    ):
        until = time.monotonic() + SECONDS
        tenants = [
            Tenant(scenario, name, queue, random.Random(f"{SEED} {name}"))
            for name, queue in zip(TENANTS, (first, second), strict=True)
        ]
        async with asyncio.TaskGroup() as tasks:
            for tenant in tenants:
                tasks.create_task(tenant.run(until))
    made = sum(tenant.number for tenant in tenants)
    figures = f"{made} HyperJobs, {held.slow} pods ended slowly, most GPUs {dict(held.most)}"
    sys.stdout.write(f"seed {SEED}, {SECONDS:g} s: {figures} of {SHARE} each\n")
    assert all(0 < held.most[name] <= SHARE for name in TENANTS), figures
    assert held.slow, "some pods ignored SIGTERM"
