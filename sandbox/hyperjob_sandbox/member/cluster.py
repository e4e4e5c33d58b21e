"""One member cluster: its own API server with nodes, Volcano and kubelets.

Its controllers reach the API server over HTTPS: they stop where it stops listening.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERNODES, NODES, PODS, QUEUES
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.clusters import Cluster, SandboxConfig
from hyperjob_sandbox.member.caches import MemberCaches
from hyperjob_sandbox.member.claim_controller import ClaimController
from hyperjob_sandbox.member.gang_scheduler import GangScheduler
from hyperjob_sandbox.member.job_controller import JobController
from hyperjob_sandbox.member.kubelet import Kubelet, KubeletFactory, SimulatedKubelet
from hyperjob_sandbox.member.nodes import hypernodes_of, nodes_of, others_of
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
