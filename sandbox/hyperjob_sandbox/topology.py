"""The one entry point: a Karmada control plane with its members, started and stopped as a whole.

async with Topology(config, directory) as topology:
    ...  # topology.kubeconfig, topology.clusters
"""

import asyncio
import shutil
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CRDS, QUEUES
from hyperjob_sandbox import outages
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.clusters import LostCluster, SandboxConfig
from hyperjob_sandbox.karmada.cluster_controller import Member
from hyperjob_sandbox.karmada.controlplane import ControlPlane
from hyperjob_sandbox.karmada.definitions import control_plane_definitions, member_definitions
from hyperjob_sandbox.karmada.proxy import SUBRESOURCE, ClusterProxy
from hyperjob_sandbox.karmada.webhooks import WebhookServer, registered
from hyperjob_sandbox.member.cluster import MemberCluster
from hyperjob_sandbox.objects import FIELD_MANAGER
from hyperjob_sandbox.processes.claims import ClaimData
from hyperjob_sandbox.processes.hostclient import ProcessHost
from hyperjob_sandbox.processes.images import Image
from hyperjob_sandbox.processes.kubelet import ProcessKubelet
from hyperjob_sandbox.processes.network import Network
from hyperjob_sandbox.processes.node import Machine


class Topology(Part):
    """A running sandbox, an async context manager.

    Without `api` it brings its own API server, on `port` (0 takes a free one); with it, the
    kubeconfig of any API server, it installs its definitions there and works on that. Written into
    `directory`: `karmada.kubeconfig` and `<member>.kubeconfig`.
    """

    def __init__(
        self, config: SandboxConfig, directory: Path, *, api: Path | None = None, port: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.directory = directory
        self.kubeconfig = directory / "karmada.kubeconfig"
        definitions = member_definitions()
        self.machine = self._make_machine() if config.pods == "processes" else None
        """What runs the pods as processes, None where they are simulated."""
        self.clusters = {
            cluster.name: MemberCluster(
                cluster,
                config,
                kubeconfig=directory / f"{cluster.name}.kubeconfig",
                definitions=definitions,
                kubelet=partial(ProcessKubelet, cluster.name, self.machine)
                if self.machine
                else None,
            )
            for cluster in config.clusters
        }
        """The members by their names."""
        proxy = ClusterProxy({name: each.server for name, each in self.clusters.items()})
        self.server = (
            None
            if api is not None
            else ApiServer(
                port=port, crds=control_plane_definitions(), connectors={SUBRESOURCE: proxy}
            )
        )
        self._api = api

    async def _set_up(self, stack: AsyncExitStack) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.machine is not None:
            await stack.enter_async_context(self.machine.host)
        server = await stack.enter_async_context(WebhookServer())
        kube = await self._connect(stack)
        await asyncio.gather(*map(stack.enter_async_context, self.clusters.values()))
        for name, each in self.clusters.items():
            volcano = registered(
                each.kube, server, each.caches[QUEUES], "volcano", prefix=f"/{name}"
            )
            await stack.enter_async_context(volcano)
        control_plane = await stack.enter_async_context(
            ControlPlane(
                kube,
                self.config,
                members={
                    name: Member(each.caches, each.server.url)
                    for name, each in self.clusters.items()
                },
                server=server,
            )
        )
        self.start(control_plane.failure(), name="control plane")
        for name, each in self.clusters.items():
            self.start(each.failure(), name=name)
        if self.machine is not None:
            self.start(self.machine.host.failure(), name="process host")
            caches = {name: each.caches for name, each in self.clusters.items()}
            data = ClaimData(self.machine.folder, caches)
            self.start(data.run(), name="claims")
        self.start(outages.follow(control_plane.caches, self.clusters), name="outages")
        for lost in self.config.lost_clusters:
            self.start(self._lose(kube, lost), name=f"lost/{lost.cluster}")

    def _make_machine(self) -> Machine:
        folder = self.directory / "pods"
        names = tuple(cluster.name for cluster in self.config.clusters)
        return Machine(
            host=ProcessHost(),
            network=Network(folder / "hosts", names),
            folder=folder,
            images=[Image.parse(f"{name}={value}") for name, value in self.config.images.items()],
            speed=self.config.speed,
        )

    async def _connect(self, stack: AsyncExitStack) -> Kube:
        if self.server is not None:
            await stack.enter_async_context(self.server)
            self.server.kubeconfig(self.kubeconfig)
        elif self._api is not None and self._api.resolve() != self.kubeconfig.resolve():
            shutil.copyfile(self._api, self.kubeconfig)
            self.kubeconfig.chmod(0o600)
        kube = await stack.enter_async_context(
            Kube.connect(kubeconfig=self.kubeconfig, user_agent="karmada/sandbox")
        )
        for definition in control_plane_definitions() if self.server is None else ():
            await kube.apply(CRDS, definition, field_manager=FIELD_MANAGER)
        return kube

    async def _lose(self, kube: Kube, lost: LostCluster) -> None:
        """Lose a cluster and restore it at its times."""
        await asyncio.sleep(lost.at / self.config.speed)
        await outages.lose(kube, lost.cluster, lost=True)
        if lost.back_at is not None:
            await asyncio.sleep((lost.back_at - lost.at) / self.config.speed)
            await outages.lose(kube, lost.cluster, lost=False)
