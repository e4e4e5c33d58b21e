"""The cluster controllers: health, capacity, APIs and taints of every member.

Status is collected every few seconds only, so it lags behind what runs, as in Karmada. It must
never collect anything from a cluster that does not answer.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Unavailable
from hyperjob.kube.resources import CLUSTERS, NAMESPACES, key_of
from hyperjob_sandbox.controller import Controller, wire_now
from hyperjob_sandbox.karmada import clusterstatus, names, works
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.member.watching import MemberCaches

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
        self,
        kube: Kube,
        caches: Caches,
        members: Mapping[str, MemberCaches],
        endpoints: Mapping[str, str],
        *,
        every: float,
        failure_threshold: float,
    ) -> None:
        self._kube = kube
        self._caches = caches
        self._members = {name: Member(member, endpoints[name]) for name, member in members.items()}
        self._every = every
        self._threshold = failure_threshold
        self.status = Controller("cluster-status-controller", self._sync_status, workers=4)
        self.clusters = Controller("cluster-controller", self._sync_cluster, workers=2)
        caches.clusters.add_handler(self._on_cluster)

    def _on_cluster(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        self.clusters.add(key_of(new))
        if old is None or old["spec"].get("apiEndpoint") != new["spec"].get("apiEndpoint"):
            self.status.add(key_of(new))

    async def _sync_cluster(self, name: str) -> None:
        """Give a cluster its finalizer, its execution space, and the taint its health asks for."""
        cluster = self._caches.clusters.get(name)
        if cluster is None:
            return
        if cluster["metadata"].get("deletionTimestamp"):
            await self._end(cluster)
            return
        space = names.execution_space(name)
        if self._caches.namespaces.get(space) is None:
            namespace: Object = {
                "apiVersion": NAMESPACES.api_version,
                "kind": NAMESPACES.kind,
                "metadata": {"name": space},
            }
            with suppress(AlreadyExists):
                await self._kube.create(NAMESPACES, namespace)
        wanted = deepcopy(cluster)
        finalizers = wanted["metadata"].setdefault("finalizers", [])
        if names.CLUSTER_FINALIZER not in finalizers:
            finalizers.append(names.CLUSTER_FINALIZER)
        _taint(wanted, now=wire_now())
        if wanted != cluster:
            await self._kube.replace(CLUSTERS, wanted)

    async def _end(self, cluster: Object) -> None:
        """Let a cluster go once none of its Works is left."""
        name: str = cluster["metadata"]["name"]
        space = names.execution_space(name)
        if names.CLUSTER_FINALIZER not in (cluster["metadata"].get("finalizers") or ()):
            return
        with suppress(NotFound, Conflict):
            await self._kube.delete(NAMESPACES, space)
        ended = deepcopy(cluster)
        ended["metadata"]["finalizers"].remove(names.CLUSTER_FINALIZER)
        await self._kube.replace(CLUSTERS, ended)

    async def _sync_status(self, name: str) -> None:
        member = self._members.get(name)
        cluster = self._caches.clusters.get(name)
        if member is None or cluster is None:
            return
        try:
            status = await self._status(cluster, member)
            if status != (cluster.get("status") or {}):
                updated = {**cluster, "status": status}
                await self._kube.replace(CLUSTERS, updated, subresource="status")
        finally:
            self.status.add(name, after=self._every)

    async def _status(self, cluster: Object, member: Member) -> Object:
        if cluster["spec"].get("apiEndpoint") != member.endpoint:  # nothing answers anywhere else
            return self._failing(cluster, member, clusterstatus.UNREACHABLE)
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                await member.caches.kube.raw("GET", "/readyz", accept="*/*")
                await self._learn(member)
        except (TimeoutError, Unavailable):
            return self._failing(cluster, member, clusterstatus.UNREACHABLE)
        except KubeError:
            return self._failing(cluster, member, clusterstatus.UNHEALTHY)
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

    def _failing(self, cluster: Object, member: Member, state: tuple[str, str, str]) -> Object:
        """Return the status of a failing cluster; a short failure of a ready one does not count."""
        now = time.monotonic()
        if member.failing_since is None:
            member.failing_since = now
        ready = works.find_condition(cluster, "Ready")
        if (
            ready is not None
            and ready["status"] == "True"
            and now - member.failing_since < self._threshold
        ):
            self.status.add(
                cluster["metadata"]["name"],
                after=min(self._every, self._threshold - (now - member.failing_since)),
            )
            return dict(cluster.get("status") or {})
        return clusterstatus.failing_status(cluster, state, now=wire_now())

    async def _learn(self, member: Member) -> None:
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


def _taint(cluster: Object, *, now: str) -> None:
    """Add or take away the not-ready taint, by the Ready condition."""
    ready = works.find_condition(cluster, "Ready")
    taints = list(cluster["spec"].get("taints") or ())
    present = any(each["key"] == names.TAINT_NOT_READY for each in taints)
    if ready is not None and ready["status"] == "True":
        taints = [each for each in taints if each["key"] != names.TAINT_NOT_READY]
    elif not present:
        taints.append({**_NOT_READY, "timeAdded": now})
    if taints:
        cluster["spec"]["taints"] = taints
    else:
        cluster["spec"].pop("taints", None)
