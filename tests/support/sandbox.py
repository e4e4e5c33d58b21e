"""Builders of small sandboxes, and a follower of a resource's objects in a test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

from hyperjob_core.api.names import work_name, works_namespace
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import PROPAGATION_POLICIES, VCJOBS, Resource, key_of
from hyperjob_sandbox.clusters import SandboxConfig, parse
from hyperjob_sandbox.karmada.cluster_controller import ClusterController, Member

Object = dict[str, Any]
Predicate = Callable[[Object], Any]
GPU = "nvidia.com/gpu"
PATIENCE = 60.0

CLUSTERS = """
clusters:
- name: member1
  labels: {accelerator: gpu-1}
  region: east
  nodes: [{count: 4, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]
- name: member2
  nodes: [{count: 4, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]
runTimes: {defaultSeconds: 0.3, jobs: [{job: "long-*", seconds: 3600}]}
volcanoGlobal: {enabled: true, dispatchPeriod: 0.1}
karmada: {clusterStatusSeconds: 0.3, clusterFailureSeconds: 0.3}
"""


def config(extra: str = "", **changes: Any) -> SandboxConfig:
    """Return two small members, with more YAML or with changed fields."""
    return parse(CLUSTERS + extra).model_copy(update=changes)


def job(name: str, *, pods: int = 2, gpus: int = 1, **spec: Any) -> Object:
    """Return a vcjob of one task."""
    container = {"name": "c", "image": "x", "resources": {"limits": {GPU: gpus}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "worker", "replicas": pods, "template": template}
    return {
        **VCJOBS.head,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [task], **spec},
    }


def policy(name: str, *clusters: str, affinity: str = "hyperjob", **spec: Any) -> Object:
    """Return the policy that pins a vcjob to clusters."""
    group = {"affinityName": affinity, "clusterNames": list(clusters)}
    return {
        **PROPAGATION_POLICIES.head,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceSelectors": [{**VCJOBS.head, "name": name}],
            "preemption": "Always",
            "propagateDeps": True,
            "placement": {
                "clusterAffinities": [group],
                "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
            },
            **spec,
        },
    }


async def submit(kube: Kube, name: str, *clusters: str, **spec: Any) -> Object:
    """Create a vcjob and the policy that pins it to clusters."""
    await kube.create(PROPAGATION_POLICIES, policy(name, *clusters))
    return await kube.create(VCJOBS, job(name, **spec))


def work_key(cluster: str, name: str) -> str:
    """Return the key of the Work that carries a vcjob to a cluster."""
    return f"{works_namespace(cluster)}/{work_name(name, 'default')}"


class Follower:
    """The objects of a resource from a watch, and every version of each."""

    def __init__(self, kube: Kube, resource: Resource) -> None:
        self._informer = Informer(kube, resource)
        self._changed = asyncio.Event()
        self.history: dict[str, list[Object]] = {}
        self._informer.add_handler(self._on_change)

    def _on_change(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.history.setdefault(key_of(new), []).append(new)
        self._changed.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._informer.run()

    def get(self, key: str) -> Object | None:
        """Return the present version of an object."""
        return self._informer.get(key)

    def items(self) -> list[Object]:
        """Return the present versions of all objects."""
        return self._informer.items()

    async def until(self, key: str, holds: Predicate, *, seconds: float = PATIENCE) -> Object:
        """Wait until `holds` is true of a version of an object, and return this version."""
        seen = 0
        async with asyncio.timeout(seconds):
            while True:
                history = self.history.get(key, [])
                for obj in history[seen:]:
                    if holds(obj):
                        return obj
                seen = len(history)
                self._changed.clear()
                await self._changed.wait()

    async def now(self, key: str, holds: Predicate, *, seconds: float = PATIENCE) -> Object:
        """Wait until `holds` is true of the present version of an object."""
        async with asyncio.timeout(seconds):
            while True:
                obj = self.get(key)
                if obj is not None and holds(obj):
                    return obj
                self._changed.clear()
                await self._changed.wait()

    async def some(self, holds: Callable[[], Any], *, seconds: float = PATIENCE) -> None:
        """Wait until `holds` is true after a change of any object."""
        async with asyncio.timeout(seconds):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def gone(self, key: str, *, seconds: float = PATIENCE) -> None:
        """Wait until an object is deleted."""
        async with asyncio.timeout(seconds):
            while self.get(key) is not None:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def following(kube: Kube, *resources: Resource) -> AsyncIterator[list[Follower]]:
    """Follow resources for the length of a block."""
    followers = [Follower(kube, resource) for resource in resources]
    tasks = [asyncio.create_task(follower.run()) for follower in followers]
    try:
        yield followers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def cluster_statuses(count: int) -> None:
    """Wait until the simulated Karmada has collected `count` statuses of Clusters."""
    collected, collect = asyncio.Semaphore(0), ClusterController._status

    async def counted(self: ClusterController, cluster: Object, member: Member) -> Object:
        status = await collect(self, cluster, member)
        collected.release()
        return status

    with mock.patch.object(ClusterController, "_status", counted):
        async with asyncio.timeout(PATIENCE):
            for _ in range(count):
                await collected.acquire()


def phase(job: Object) -> str:
    """Return the phase of a vcjob."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def condition(obj: Object, kind: str) -> tuple[str, str] | None:
    """Return status and reason of a condition."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] == kind:
            return each["status"], each["reason"]
    return None


def placed_on(binding: Object) -> list[str]:
    """Return the clusters of a binding."""
    return [each["name"] for each in binding["spec"].get("clusters") or ()]


def reported(binding: Object) -> Object:
    """Return the first item of a binding's aggregated status."""
    items = (binding.get("status") or {}).get("aggregatedStatus") or [{}]
    return dict(items[0])
