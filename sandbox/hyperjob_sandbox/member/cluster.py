"""One member cluster: its own API server with nodes, Volcano and kubelets.

Its controllers reach the API server over HTTPS: they stop where it stops listening.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import Quantity
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERNODES, NODES, PODS, QUEUES
from hyperjob_sandbox.apiserver import ApiServer
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.clusters import Cluster, NodeGroup, SandboxConfig
from hyperjob_sandbox.member.caches import MemberCaches
from hyperjob_sandbox.member.claim_controller import ClaimController
from hyperjob_sandbox.member.gang_scheduler import GangScheduler
from hyperjob_sandbox.member.job_controller import JobController
from hyperjob_sandbox.member.kubelet import Kubelet, KubeletFactory, SimulatedKubelet
from hyperjob_sandbox.member.queue_controller import QueueController
from hyperjob_sandbox.objects import new_object

QUEUES_OF_VOLCANO: Final = ("root", "default")
"""The queues that Volcano itself makes in every cluster."""
_ANSWERED_BY_KUBELETS: Final = ("log", "exec", "attach", "portforward")
_SYNC_SECONDS: Final = 30.0


class MemberCluster(Part):
    """A running member, an async context manager.

    `kubeconfig` is where its administrator's kubeconfig is written. `kubelet` makes what runs its
    pods, by default a simulation, whose logs the API server makes from the pods' times.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: SandboxConfig,
        *,
        kubeconfig: Path,
        definitions: Sequence[Object],
        kubelet: KubeletFactory | None = None,
    ) -> None:
        super().__init__()
        self.name = cluster.name
        self.kubeconfig = kubeconfig
        self.server = ApiServer(
            name=cluster.name,
            crds=definitions,
            connectors={("", "pods", name): self._answer for name in _ANSWERED_BY_KUBELETS}
            if kubelet is not None
            else {},
        )
        self._make_kubelet = kubelet or partial(SimulatedKubelet, cluster.name, config)
        self._kubelet: Kubelet
        self._cluster = cluster
        self.caches: MemberCaches
        """What the member's controllers, and Karmada's, watch in it, once it is started."""

    @property
    def kube(self) -> Kube:
        """Give the client of the member's API server."""
        return self.caches.kube

    async def _set_up(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self.server)
        self.server.kubeconfig(self.kubeconfig)
        kube = await stack.enter_async_context(
            Kube.connect(kubeconfig=self.kubeconfig, user_agent="volcano/sandbox")
        )
        for node in nodes_of(self._cluster):
            await kube.create(NODES, node)
        for pod in others_of(self._cluster):
            await kube.create(PODS, pod)  # without its status: a kubelet would start it
            await kube.patch(
                PODS,
                pod["metadata"]["name"],
                {"status": pod["status"]},
                namespace="default",
                kind=PatchType.MERGE,
                subresource="status",
            )
        for hypernode in hypernodes_of(self._cluster):
            await kube.create(HYPERNODES, hypernode)
        for queue in QUEUES_OF_VOLCANO:
            spec = {"weight": 1, "reclaimable": True}
            await kube.create(QUEUES, new_object(QUEUES, queue, spec=spec))
        self.caches = MemberCaches(kube)
        self._kubelet = self._make_kubelet(self.caches)
        stack.push_async_callback(self._kubelet.stop)
        self.start(self.caches.run(), name=f"{self.name}/informers")
        self.start(self._kubelet.run(), name=f"{self.name}/kubelet")
        for part in (JobController, GangScheduler, QueueController, ClaimController):
            controller = part(self.caches).controller
            self.start(controller.run(), name=f"{self.name}/{controller.name}")
        async with asyncio.timeout(_SYNC_SECONDS):
            await self.until(self.caches.synced())

    async def lose(self) -> None:
        """Stop the API server, and kill the processes of the pods."""
        await self.server.stop_listening()
        await self._kubelet.lose()

    async def restore(self) -> None:
        """Start the API server again."""
        await self.server.start_listening()

    async def _answer(self, call: Call) -> Reply | Stream:
        return await self._kubelet.answer(call)


def nodes_of(cluster: Cluster) -> Iterator[Object]:
    """Return the nodes of a member, all of them well."""
    for group in cluster.nodes:
        taints = [taint.model_dump(exclude_defaults=True) for taint in group.taints]
        status = _status(group)
        for number in range(group.count):
            name = f"{cluster.name}-{group.name}-{number + 1}"
            labels = {**node_labels(cluster), "kubernetes.io/hostname": name, **group.labels}
            spec = {"spec": {"taints": taints}} if taints else {}
            yield new_object(NODES, name, labels=labels, **spec, status=status)


def node_labels(cluster: Cluster) -> dict[str, str]:
    """Return the labels that kubelets and the clouds give to nodes."""
    region = cluster.region or cluster.name
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": cluster.zone or region,
    }


def others_of(cluster: Cluster) -> Iterator[Object]:
    """Return the pods of other workloads, which run from the start and do not end."""
    for group in cluster.nodes:
        requests = {name: str(Quantity.parse(each)) for name, each in sorted(group.others.items())}
        for number in range(group.count if requests else 0):
            node = f"{cluster.name}-{group.name}-{number + 1}"
            container = {"name": "main", "image": "busybox", "resources": {"limits": requests}}
            spec = {"nodeName": node, "containers": [container]}
            status = {"phase": "Running", "startTime": wire_now()}
            made = new_object(PODS, f"{node}-other", labels={"app": "other"}, spec=spec)
            made["metadata"]["namespace"] = "default"
            yield {**made, "status": status}


def hypernodes_of(cluster: Cluster) -> Iterator[Object]:
    """Return the HyperNodes of a member."""
    for each in cluster.hyper_nodes:
        members = [
            {"type": kind, "selector": _selector(name)}
            for kind, names in (("Node", each.nodes), ("HyperNode", each.hyper_nodes))
            for name in names
        ]
        yield new_object(HYPERNODES, each.name, spec={"tier": each.tier, "members": members})


def _selector(name: str) -> Object:
    if "*" not in name:
        return {"exactMatch": {"name": name}}
    parts = (re.escape(part) for part in name.split("*"))
    return {"regexMatch": {"pattern": f"^{'.*'.join(parts)}$"}}


def _status(group: NodeGroup) -> Object:
    amounts = {
        name: str(Quantity.parse(amount)) for name, amount in sorted(group.allocatable.items())
    }
    ready: Object = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": wire_now(),
        "lastTransitionTime": wire_now(),
    }
    return {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
