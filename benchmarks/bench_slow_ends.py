"""Let two tenants run pods that ignore SIGTERM, and print the most GPUs that their queues hold.

Pods are processes of this machine. Each queue has a capability of 4 GPUs. With `--members pods` the
controller counts a stopped pod until its member shows no pod of it, with `--members off` until its
grace period is over. The benchmark asserts nothing, and prints for how long a queue held more than
its share.
"""

import argparse
import asyncio
import contextlib
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import yaml

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, open_scenario
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, PatchType
from hyperjob_core.kube.errors import Conflict, NotFound
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, PODS
from hyperjob_install.interpreters import interpreters
from tests.support.stack import kubectl

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


@dataclass(slots=True)
class Held:
    """The GPUs that running pods of each tenant hold now, and the most that they ever held."""

    now: dict[str, tuple[str, int]] = field(default_factory=dict)
    most: Counter[str] = field(default_factory=Counter)
    slow: int = 0
    above: dict[str, float] = field(default_factory=dict)
    longest: float = 0.0

    def saw(self, member: str, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record a pod of a member; a pod that is being deleted holds its GPUs until it ends."""
        obj = new or old or {}
        name, phase = obj["metadata"]["name"], (obj.get("status") or {}).get("phase")
        if kind is EventType.DELETED or phase != "Running":
            self.now.pop(f"{member}/{name}", None)
        else:
            limits = obj["spec"]["containers"][0]["resources"]["limits"]
            self.now[f"{member}/{name}"] = name.partition("-")[0], int(limits[GPU])
        self.slow += "deletionTimestamp" in obj["metadata"] and (
            "deletionTimestamp" not in (old or obj)["metadata"]
        )
        held = Counter[str]()
        for tenant, number in self.now.values():
            held[tenant] += number
        self.most |= held
        for tenant in TENANTS:
            if held[tenant] > SHARE:
                if tenant not in self.above:
                    shown = [each for each, (owner, _) in self.now.items() if owner == tenant]
                    print(f"{tenant} holds {held[tenant]} GPUs: {', '.join(sorted(shown))}")
                self.above.setdefault(tenant, time.monotonic())
            elif tenant in self.above:
                self.longest = max(self.longest, time.monotonic() - self.above.pop(tenant))


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


async def play(scenario: Scenario, *, seconds: float, seed: int) -> None:
    """Let both tenants act for some time, and print what their queues held."""
    limit = {GPU: str(SHARE)}
    async with (
        scenario.queue("-ann", capability=limit) as first,
        scenario.queue("-ben", capability=limit) as second,
        watched(scenario) as held,
    ):
        until = time.monotonic() + seconds
        tenants = [
            Tenant(scenario, name, queue, random.Random(f"{seed} {name}"))
            for name, queue in zip(TENANTS, (first, second), strict=True)
        ]
        async with asyncio.TaskGroup() as tasks:
            for tenant in tenants:
                tasks.create_task(tenant.run(until))
    made = sum(tenant.number for tenant in tenants)
    print(
        f"seed {seed}, {seconds:g} s: {made} HyperJobs, {held.slow} pods ended slowly,"
        f" most GPUs {dict(held.most)} of {SHARE} each, above it for {held.longest:.1f} s at most"
    )


async def run(world: World, *, seconds: float, seed: int) -> None:
    async with open_scenario(world) as scenario:
        await play(scenario, seconds=seconds, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--members", choices=["off", "pods"], default="pods")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        file = directory / "clusters.yaml"
        file.write_text(yaml.safe_dump(CLUSTERS))
        with open_world(
            from_environment({}),
            directory,
            clusters=file,
            queue_admission="builtin",
            controller=[f"--members={given.members}"],
        ) as world:
            scripts = yaml.safe_dump_all([item.object for item in interpreters()])
            kubectl(world.kubeconfig, "apply", "-f", "-", stdin=scripts)
            asyncio.run(run(world, seconds=given.seconds, seed=given.seed))


if __name__ == "__main__":
    main()
