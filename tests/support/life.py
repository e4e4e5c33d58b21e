"""A simulated Karmada with two members, and a controller at work, for the lives of HyperJobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    CRDS,
    HYPERJOBS,
    VCJOBS,
)
from hyperjob_sandbox.clusters import VolcanoGlobal
from hyperjob_sandbox.topology import Topology
from tests.support.controller import running_controller
from tests.support.sandbox import GPU, Follower, config, following
from tests.support.stack import HYPERJOB_CRD

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Life:
    """A simulated Karmada with two members, and a controller at work."""

    kube: Kube
    topology: Topology
    hyperjobs: Follower

    async def create(self, name: str, *groups: Object, **spec: Any) -> None:
        """Create a HyperJob with the webhook's defaults, without which members refuse updates."""
        document = {
            **HYPERJOBS.head,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicatedJobs": list(groups), **spec},
        }
        await self.kube.create(HYPERJOBS, document)

    async def change(self, name: str, body: Object) -> None:
        """Merge something into a HyperJob."""
        await self.kube.patch(HYPERJOBS, name, body, kind=PatchType.MERGE, namespace="default")

    async def until(self, name: str, *phases: str) -> Object:
        """Wait until a HyperJob is in one of the phases now; give its status."""
        found = await self.hyperjobs.now(f"default/{name}", lambda obj: phase_of(obj) in phases)
        status: Object = found["status"]
        return status

    async def in_member(self, member: str) -> dict[str, str]:
        """Give the phase of each vcjob that a member has."""
        items = (await self.topology.clusters[member].kube.list(VCJOBS)).items
        return {
            item["metadata"]["name"]: ((item.get("status") or {}).get("state") or {}).get(
                "phase", ""
            )
            for item in items
        }


def phase_of(obj: Object) -> str:
    return str(((obj.get("status") or {}).get("state") or {}).get("phase", ""))


def jobs_of(obj: Object) -> list[Object]:
    jobs: list[Object] = (obj.get("status") or {}).get("jobs") or []
    return jobs


def group(name: str, *, seconds: float = 3600, replicas: int = 1, **fields: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": {"limits": {GPU: 1}, "requests": {GPU: 1}}}
    template = {
        "metadata": {"annotations": {"sandbox.hyperjob.volcano.sh/seconds": str(seconds)}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    task = {"name": "worker", "replicas": 1, "template": template}
    spec = {"schedulerName": "volcano", "queue": "default", "maxRetry": 1, "tasks": [task]}
    return {"name": name, "replicas": replicas, "templateSpec": spec, **fields}


@asynccontextmanager
async def living(directory: Path, **options: Any) -> AsyncIterator[Life]:
    settings = config(volcano_global=VolcanoGlobal(enabled=False))
    async with (
        Topology(settings, directory) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig, user_agent="test") as kube,
    ):
        await kube.apply(CRDS, yaml.safe_load(HYPERJOB_CRD.read_text()), field_manager="test")
        async with (
            following(kube, HYPERJOBS) as (hyperjobs,),
            running_controller(topology.kubeconfig, "default", cluster_status_lag=1.0, **options),
        ):
            yield Life(kube, topology, hyperjobs)
