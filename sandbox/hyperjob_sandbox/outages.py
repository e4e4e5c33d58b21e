"""Lost clusters: those whose Cluster has the annotation LOST.

An annotation is the only way to lose a cluster: the times of the clusters file set it too.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import CLUSTERS
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.objects import annotations_of

LOST: Final = "sandbox.hyperjob.volcano.sh/lost"


class LosableCluster(Protocol):
    """A cluster that can be lost."""

    async def lose(self) -> None:
        """Stop its API server, and kill the processes of its pods."""

    async def restore(self) -> None:
        """Start its API server again."""


async def lose(kube: Kube, cluster: str, *, lost: bool) -> None:
    """Lose a cluster of a sandbox, or restore it; raises KubeError."""
    body = {"metadata": {"annotations": {LOST: "true" if lost else None}}}
    await kube.patch(CLUSTERS, cluster, body, kind=PatchType.MERGE)


async def follow(caches: Caches, clusters: Mapping[str, LosableCluster]) -> None:
    """Lose and restore clusters by the annotations of their Clusters, until cancelled."""
    changed = asyncio.Event()
    caches.clusters.add_handler(lambda *_: changed.set())
    lost: set[str] = set()
    while True:
        changed.clear()
        wanted = {
            name
            for name in clusters
            if (cluster := caches.clusters.get(name))
            and annotations_of(cluster).get(LOST) == "true"
        }
        for name in sorted(wanted - lost):
            await clusters[name].lose()
        for name in sorted(lost - wanted):
            await clusters[name].restore()
        lost = wanted
        await changed.wait()
