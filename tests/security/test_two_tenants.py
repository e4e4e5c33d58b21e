"""Two hostile tenants and an honest one on one control plane: nobody gets what is another's.

The controller acts with its installed role, and names nobody else's HyperJobs in a status.

HYPERJOB_TENANT_SECONDS is how long they go on (20 s by default).
"""

import asyncio
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import EVENTS, HYPERJOBS, QUEUES, RESOURCE_BINDINGS, VCJOBS
from hyperjob_install.rbac import CONTROLLER
from tests.support.controlplane import ControlPlane
from tests.support.controlplane import control_plane as start_control_plane
from tests.support.hyperjobs import hyperjob, job_template
from tests.support.roles import controller_account, person
from tests.support.stack import our_stack, sandbox

SECONDS = float(os.environ.get("HYPERJOB_TENANT_SECONDS", "20"))
# What the tenants leave behind grows with the time that they had.
pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200 + 3 * SECONDS)]
LONGEST = 300.0
"""Seconds that a small HyperJob may take among hostile tenants, on a machine with other work."""
GPU = "nvidia.com/gpu"
SHARES = {"mallory": 8, "bob": 8, "carol": 4}
CLUSTERS = """
speed: 20
volcanoGlobal: {enabled: false}
clusters:
- name: east
  nodes: [{count: 2, allocatable: {cpu: "64", memory: 256Gi, nvidia.com/gpu: 8}}]
- name: west
  nodes: [{count: 2, allocatable: {cpu: "64", memory: 256Gi, nvidia.com/gpu: 8}}]
"""
Object = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """What was done and answered."""

    deeds: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    started: list[float] = field(default_factory=list)
    admitted: list[float] = field(default_factory=list)
    leaks: set[str] = field(default_factory=set)
    read: int = 0


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server on which Roles decide, with members, webhook and controller."""
    directory = tmp_path_factory.mktemp("tenants")
    (directory / "roles").mkdir()
    with start_control_plane(directory / "roles", rbac=True) as plane:
        (directory / "clusters.yaml").write_text(CLUSTERS)
        with (
            sandbox(directory, directory / "clusters.yaml", kubeconfig=plane.kubeconfig),
            our_stack(
                directory / "ours",
                plane.kubeconfig,
                queue_admission="builtin",
                controller=["--tenant-messages=counts"],
                webhook=[f"--controller-users=system:serviceaccount:default:{CONTROLLER}"],
                controller_kubeconfig=controller_account(plane, "default", directory),
            ),
        ):
            for name, share in SHARES.items():
                queue = {
                    **QUEUES.head,
                    "metadata": {"name": name},
                    "spec": {"weight": 1, "capability": {GPU: share}},
                }
                plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump(queue))
                plane.kubectl("create", "namespace", name)
            yield plane


@pytest.fixture
async def kubes(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[dict[str, Kube]]:
    async with AsyncExitStack() as stack:
        found = {}
        for name in SHARES:
            path = person(control_plane, name, name, tmp_path, role="hyperjob-edit")
            found[name] = await stack.enter_async_context(
                Kube.connect(kubeconfig=path, user_agent=name)
            )
        found["root"] = await stack.enter_async_context(
            Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="root")
        )
        yield found


def simulated(
    tenant: str, name: str, *, pods: int, replicas: int = 1, seconds: float = 20
) -> Object:
    """Return a HyperJob in the namespace and the queue of a tenant."""
    limits = {"limits": {GPU: 1}}
    template = job_template(
        pods=pods, resources=limits, pod={"restartPolicy": "Never"}, queue=tenant
    )
    annotations = {"sandbox.hyperjob.volcano.sh/seconds": str(seconds)}
    template["tasks"][0]["template"]["metadata"] = {"annotations": annotations}
    return hyperjob(name, template, namespace=tenant, replicas=replicas)


class Hostile:
    """A tenant who tries to get more than a share, or to stop others, with the rights of a role."""

    def __init__(self, kube: Kube, name: str, seed: int, seen: Seen) -> None:
        self.kube, self.name, self.seen = kube, name, seen
        self.rng = random.Random(seed)
        self.mine: list[str] = []
        self.number = 0

    async def run(self, until: float) -> None:
        deeds = [
            self.create, self.create, self.create_with_finalizer, self.delete, self.orphan,
            self.grow, self.more, self.suspend, self.resume, self.protect, self.overwrite, self.ask,
            self.huge_quantity, self.huge_list, self.huge_replicas,
        ]  # fmt: skip
        while time.monotonic() < until:
            deed = self.rng.choice(deeds)
            self.seen.deeds[deed.__name__] += 1
            try:
                await deed()
            except KubeError as error:
                self.seen.refused[error.http_code] += 1
            await asyncio.sleep(0.02)

    def _new(self) -> Object:
        self.number += 1
        name = f"{self.name}-{self.number}"
        self.mine.append(name)
        return simulated(
            self.name,
            name,
            pods=self.rng.choice((1, 2, 4, 8, 16)),
            replicas=self.rng.choice((1, 1, 2)),
            seconds=self.rng.choice((1, 20, 600)),
        )

    def _any(self) -> str:
        return self.rng.choice(self.mine) if self.mine else "none"

    async def _create(self, made: Object) -> None:
        await self.kube.create(HYPERJOBS, made, namespace=self.name)

    async def _patch(self, body: Object) -> None:
        await self.kube.patch(
            HYPERJOBS, self._any(), body, kind=PatchType.MERGE, namespace=self.name
        )

    async def create(self) -> None:
        await self._create(self._new())

    async def create_with_finalizer(self) -> None:
        made = self._new()
        made["metadata"]["finalizers"] = ["example.com/stays"]
        await self._create(made)

    async def delete(self) -> None:
        await self.kube.delete(HYPERJOBS, self._any(), namespace=self.name)

    async def orphan(self) -> None:
        path = HYPERJOBS.path(self.name, self._any())
        await self.kube.raw("DELETE", path, params={"propagationPolicy": "Orphan"})

    async def _sized(self, *, pods: int | None = None, replicas: int | None = None) -> None:
        found = await self.kube.get(HYPERJOBS, self._any(), namespace=self.name)
        groups = found["spec"]["replicatedJobs"]
        if pods is not None:
            groups[0]["templateSpec"]["tasks"][0]["replicas"] = pods
        if replicas is not None:
            groups[0]["replicas"] = replicas
        await self.kube.patch(
            HYPERJOBS,
            found["metadata"]["name"],
            {"spec": {"replicatedJobs": groups}},
            kind=PatchType.MERGE,
            namespace=self.name,
        )

    async def grow(self) -> None:
        await self._sized(pods=self.rng.choice((1, 8, 30)))

    async def more(self) -> None:
        await self._sized(replicas=self.rng.choice((1, 3, 10)))

    async def huge_replicas(self) -> None:
        await self._sized(replicas=20_000_000)

    async def suspend(self) -> None:
        await self._patch({"spec": {"suspend": True}})

    async def resume(self) -> None:
        await self._patch({"spec": {"suspend": False}})

    async def protect(self) -> None:
        await self._metadata({"resourcetemplate.karmada.io/deletion-protected": "Always"})

    async def overwrite(self) -> None:
        await self._metadata({"work.karmada.io/conflict-resolution": "overwrite"})

    async def _metadata(self, both: Object) -> None:
        made = self._new()
        made["spec"]["replicatedJobs"][0]["templateMetadata"] = {
            "labels": both,
            "annotations": both,
        }
        await self._create(made)

    async def ask(self) -> None:
        kind = self.rng.choice(("restart", "migrate"))
        token = self.rng.choice(("x", "a" * 5000, "\u0000", "t r-0 r-1", "💥"))
        key = f"training.volcano.sh/{kind}"
        await self._patch({"metadata": {"annotations": {key: token}}})

    async def huge_quantity(self) -> None:
        made = self._new()
        container = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"][
            "spec"
        ]["containers"][0]
        container["resources"] = {"limits": {GPU: "0" * 4000 + "e1.5"}}
        await self._create(made)

    async def huge_list(self) -> None:
        made = self._new()
        template = made["spec"]["replicatedJobs"][0]["templateSpec"]
        template["tasks"][0]["dependsOn"] = {"name": [f"unknown-{n}" for n in range(3000)]}
        await self._create(made)


async def honest(kube: Kube, seen: Seen, until: float) -> None:
    """Run one small HyperJob after the other."""
    number = 0
    while time.monotonic() < until:
        number += 1
        seen.started.append(await run_one(kube, f"carol-{number}"))


async def ask_admission(kube: Kube, seen: Seen, until: float) -> None:
    """Have a HyperJob admitted again and again; a refusal or an outage ends the test."""
    made = simulated("carol", "asked", pods=1)
    path = HYPERJOBS.path("carol")
    while time.monotonic() < until:
        began = time.monotonic()
        await kube.raw("POST", path, body=made, params={"dryRun": "All"})
        seen.admitted.append(time.monotonic() - began)
        await asyncio.sleep(0.25)


async def look_for_names(kubes: dict[str, Kube], seen: Seen, until: float) -> None:
    """Read what each tenant may, and note every word in it that is another tenant's name."""
    while time.monotonic() < until:
        for reader in SHARES:
            others = re.compile("|".join(rf"\b{name}\b" for name in SHARES if name != reader))
            found = (await kubes[reader].list(HYPERJOBS, namespace=reader)).items
            found += (await kubes["root"].list(EVENTS, namespace=reader)).items
            seen.read += len(found)
            seen.leaks |= {f"{reader} reads {_around(hit)}" for hit in others.finditer(str(found))}
        await asyncio.sleep(0.5)


def _around(hit: re.Match[str]) -> str:
    return hit.string[max(0, hit.start() - 120) : hit.end() + 60]


async def run_one(kube: Kube, name: str) -> float:
    """Run a small HyperJob to its end; return the seconds that it took."""
    began = time.monotonic()
    made = simulated("carol", name, pods=2, replicas=2, seconds=1)
    await kube.create(HYPERJOBS, made, namespace="carol")
    while True:
        found = await kube.get(HYPERJOBS, name, namespace="carol")
        state = (found.get("status") or {}).get("state") or {}
        if state.get("phase") == "Completed":
            break
        assert state.get("phase") != "Failed", state
        assert time.monotonic() - began < LONGEST, f"{name}: {state}"
        await asyncio.sleep(0.1)
    took = time.monotonic() - began
    await kube.delete(HYPERJOBS, name, namespace="carol")
    return took


async def watch_shares(root: Kube, until: float) -> dict[str, int]:
    """Return the most accelerators that members ever had to give to vcjobs of each tenant.

    A vcjob is in a member, or about to be, when its ResourceBinding is dispatched, and until the
    ResourceBinding reports its end: Karmada writes the end into the vcjob only after that, when the
    share may belong to another vcjob. The bindings are read after the vcjobs for the same reason.
    """
    most = dict.fromkeys(SHARES, 0)
    while time.monotonic() < until:
        jobs = (await root.list(VCJOBS)).items
        living = {
            binding["spec"]["resource"].get("uid")
            for binding in (await root.list(RESOURCE_BINDINGS)).items
            if not (binding["spec"].get("suspension") or {}).get("dispatching")
            and not any(map(_has_ended, (binding.get("status") or {}).get("aggregatedStatus", [])))
        }
        used = Counter[str]()
        for job in jobs:
            if job["metadata"]["uid"] in living:
                used[job["metadata"]["namespace"]] += _gpus(job)
        most = {name: max(number, used[name]) for name, number in most.items()}
        await asyncio.sleep(0.1)
    return most


def _has_ended(item: Object) -> bool:
    """Tell whether an item of an aggregated status says that the vcjob has ended in its member."""
    phase = ((item.get("status") or {}).get("state") or {}).get("phase")
    return phase in ("Completed", "Failed", "Terminated", "Aborted")


def _gpus(job: Object) -> int:
    total = 0
    for task in job["spec"]["tasks"]:
        for container in task["template"]["spec"]["containers"]:
            limit = Quantity.parse(container["resources"]["limits"].get(GPU, 0))
            total += int(task["replicas"]) * limit.nano // NANO
    return total


async def test_nobody_gets_a_gpu_or_a_second_of_outage_from_another(
    kubes: dict[str, Kube], capsys: pytest.CaptureFixture[str]
) -> None:
    # The time of one HyperJob without other tenants says how fast this machine is now.
    alone = await run_one(kubes["carol"], "carol-0")
    until = time.monotonic() + SECONDS
    seen = Seen()
    try:
        async with asyncio.TaskGroup() as group:
            shares = group.create_task(watch_shares(kubes["root"], until))
            for seed, name in enumerate(("mallory", "bob")):
                group.create_task(Hostile(kubes[name], name, seed, seen).run(until))
            group.create_task(honest(kubes["carol"], seen, until))
            group.create_task(ask_admission(kubes["carol"], seen, until))
            group.create_task(look_for_names(kubes, seen, until))
    finally:
        await forget(kubes["root"])
    assert seen.started, "the honest tenant ran nothing"
    slowest = max(seen.started)
    capsys.readouterr()
    with capsys.disabled():
        report = f"{seen.deeds.total()} deeds, refused {dict(seen.refused)}; {len(seen.started)}"
        report += (
            f" honest HyperJobs, half in {median(seen.started):.1f} s, slowest {slowest:.1f} s"
        )
        report += f" (alone {alone:.1f} s); {len(seen.admitted)} reviews asked for, slowest"
        report += f" {max(seen.admitted):.2f} s; names looked for in {seen.read} objects"
        report += f"; most GPUs {shares.result()}"
        sys.stderr.write(f"\n{report}\n")
    assert all(number <= SHARES[name] for name, number in shares.result().items()), shares.result()
    assert all(shares.result().values()), "each tenant got some"
    assert not seen.leaks, seen.leaks
    assert not {code for code in seen.refused if code >= 500}, seen.refused


async def forget(root: Kube) -> None:
    """Remove what the tenants have left, finalizers included."""
    for found in (await root.list(HYPERJOBS)).items:
        meta = found["metadata"]
        body: Object = {"metadata": {"finalizers": None}}
        for _ in range(2):
            try:
                await root.patch(
                    HYPERJOBS,
                    meta["name"],
                    body,
                    kind=PatchType.MERGE,
                    namespace=meta["namespace"],
                )
                await root.delete(HYPERJOBS, meta["name"], namespace=meta["namespace"])
            except NotFound:
                break
