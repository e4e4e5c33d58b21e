"""The cluster controllers: health, capacity, APIs and taints of members, every few seconds."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import works_namespace
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import NAMESPACES
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import Controller, change_of
from hyperjob_sandbox.karmada import clusterstatus, names
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.member.caches import MemberCaches
from hyperjob_sandbox.objects import is_ready, new_object

_NOT_READY: Final[Object] = {"key": names.TAINT_NOT_READY, "effect": "NoSchedule"}
_HEALTH_SECONDS: Final = 3.0
"""How long a member may take to say that it is well."""


@dataclass(slots=True)
class Member:
    """A member as Karmada knows it: where it is, how to watch it, what was learnt of its APIs."""

    caches: MemberCaches
    endpoint: str
    apis: list[Object] = field(default_factory=list)
    version: str = ""
    failing_since: float | None = None


class ClusterController:
    """Health and status of every joined cluster, each on a timer of its own."""

    def __init__(
        self, caches: Caches, members: Mapping[str, Member], *, every: float, threshold: float
    ) -> None:
        self._caches = caches
        self._members = members
        self._every = every
        self._threshold = threshold
        self.status = Controller("cluster-status-controller", self._sync_status, workers=4)
        self.clusters = Controller("cluster-controller", self._sync_cluster, workers=2)
        self.clusters.watch(caches.clusters)
        self.status.watch(
            caches.clusters, when=change_of(lambda each: each["spec"].get("apiEndpoint"))
        )

    async def _sync_cluster(self, name: str) -> None:
        """Give a cluster its execution space, and the taint its health asks for."""
        cluster = self._caches.clusters.get(name)
        if cluster is None:
            return
        space = new_object(NAMESPACES, works_namespace(name))
        if self._caches.live(space) is None:
            await self._caches.create(space)
        wanted = {**cluster, "spec": dict(cluster["spec"])}
        _taint(wanted)
        if wanted != cluster:
            await self._caches.replace(wanted)

    async def _sync_status(self, name: str) -> None:
        member = self._members.get(name)
        cluster = self._caches.clusters.get(name)
        if member is None or cluster is None:
            return
        try:
            await self._caches.set_status(cluster, await self._status(cluster, member))
        finally:
            self.status.add(name, after=self._every)

    async def _status(self, cluster: Object, member: Member) -> Object:
        if cluster["spec"].get("apiEndpoint") != member.endpoint:  # nothing answers anywhere else
            return self._failing(cluster, member)
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                await member.caches.kube.raw("GET", "/readyz", accept="*/*")
                await _learn(member)
        except (TimeoutError, KubeError):
            return self._failing(cluster, member)
        member.failing_since = None
        await member.caches.synced()
        return clusterstatus.cluster_status(
            cluster,
            version=member.version,
            apis=member.apis,
            nodes=member.caches.nodes.items(),
            pods=member.caches.pods.items(),
            now=wire_now(),
        )

    def _failing(self, cluster: Object, member: Member) -> Object:
        """Return the status of a failing cluster; a short failure of a ready one does not count."""
        now = time.monotonic()
        if member.failing_since is None:
            member.failing_since = now
        left = self._threshold - (now - member.failing_since)
        if is_ready(cluster) and left > 0:
            self.status.add(cluster["metadata"]["name"], after=min(self._every, left))
            return dict(cluster.get("status") or {})
        return clusterstatus.failing_status(cluster, now=wire_now())


async def _learn(member: Member) -> None:
    """Read version and APIs of a member, once: the sandbox installs nothing later."""
    if member.apis:
        return
    kube = member.caches.kube
    member.version = str((await kube.raw("GET", "/version")).json()["gitVersion"])
    paths = ["/api/v1"]
    for group in (await kube.raw("GET", "/apis")).json()["groups"]:
        paths += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    lists = [(await kube.raw("GET", path)).json() for path in paths]
    member.apis = clusterstatus.api_enablements(lists)


def _taint(cluster: Object) -> None:
    """Add or take away the not-ready taint, by the Ready condition."""
    taints = list(cluster["spec"].pop("taints", None) or ())
    if is_ready(cluster):
        taints = [each for each in taints if each["key"] != names.TAINT_NOT_READY]
    elif all(each["key"] != names.TAINT_NOT_READY for each in taints):
        taints.append({**_NOT_READY, "timeAdded": wire_now()})
    if taints:
        cluster["spec"]["taints"] = taints
