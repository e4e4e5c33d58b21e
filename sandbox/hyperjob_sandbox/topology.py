"""The one entry point: a Karmada control plane with its members, started and stopped as a whole.

    async with Topology(config, directory) as topology:
        ...  # topology.kubeconfig, topology.members

It knows nothing of our webhook and controller: they come to it as they come to any Karmada.
"""

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube
from hyperjob.kube.resources import CRDS, QUEUES
from hyperjob_sandbox.apiserver import ApiServer
from hyperjob_sandbox.background import Part
from hyperjob_sandbox.clusters import LostCluster, SandboxConfig
from hyperjob_sandbox.karmada import webhooks
from hyperjob_sandbox.karmada.cluster_controller import Member
from hyperjob_sandbox.karmada.controlplane import ControlPlane
from hyperjob_sandbox.karmada.definitions import control_plane_definitions, member_definitions
from hyperjob_sandbox.karmada.proxy import SUBRESOURCE, ClusterProxy
from hyperjob_sandbox.member.cluster import MemberCluster
from hyperjob_sandbox.member.kubelet import KubeletFactory
from hyperjob_sandbox.objects import FIELD_MANAGER, find_condition
from hyperjob_sandbox.processes.hostclient import ProcessHost
from hyperjob_sandbox.processes.images import Image
from hyperjob_sandbox.processes.kubelet import ProcessKubelet
from hyperjob_sandbox.processes.network import Network
from hyperjob_sandbox.processes.node import Machine

_ESTABLISHED_TRIES: Final = 300
_ESTABLISHED_PAUSE: Final = 0.1


class Topology(Part):
    """A running sandbox, an async context manager.

    Without `api` it brings its own API server, on `port` (0 takes a free one); with it, the
    kubeconfig of any API server, it installs its definitions there and works on that. Written into
    `directory`: `karmada.kubeconfig` and `<member>.kubeconfig`.
    """

    def __init__(
        self,
        config: SandboxConfig,
        directory: Path,
        *,
        api: Path | None = None,
        port: int = 0,
    ) -> None:
        super().__init__()
        self.config = config
        self.directory = directory
        self.kubeconfig = directory / "karmada.kubeconfig"
        self.server = (
            None
            if api is not None
            else ApiServer(
                name="karmada",
                port=port,
                crds=control_plane_definitions(),
                connectors={SUBRESOURCE: ClusterProxy(self._member)},
            )
        )
        definitions = member_definitions()
        self._machine = self._make_machine() if config.pods == "processes" else None
        self._clusters = {
            cluster.name: MemberCluster(
                cluster,
                config,
                kubeconfig=directory / f"{cluster.name}.kubeconfig",
                definitions=definitions,
                kubelet=self._kubelet_of(cluster.name),
            )
            for cluster in config.clusters
        }
        self._api = api
        self._control_plane: ControlPlane | None = None

    @property
    def members(self) -> Mapping[str, Path]:
        """Give the kubeconfig of every member by its name."""
        return {name: cluster.kubeconfig for name, cluster in self._clusters.items()}

    @property
    def clusters(self) -> Mapping[str, MemberCluster]:
        """Give the running members by their names."""
        return self._clusters

    async def _set_up(self, stack: AsyncExitStack) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._machine is not None:
            await stack.enter_async_context(self._machine.host)
        server = await stack.enter_async_context(webhooks.WebhookServer())
        kube = await self._connect(stack)
        await asyncio.gather(*map(stack.enter_async_context, self._clusters.values()))
        for name, each in self._clusters.items():
            queues = each.caches[QUEUES]
            volcano = webhooks.Registrations(
                each.kube, server, queues, "volcano", prefix=f"/{name}"
            )
            await volcano.register()
        self._control_plane = await stack.enter_async_context(
            ControlPlane(
                kube,
                self.config,
                members={
                    name: Member(each.caches, each.server.url)
                    for name, each in self._clusters.items()
                },
                server=server,
            )
        )
        stack.push_async_callback(self._background.stop)
        for lost in self.config.lost_clusters:
            self._background.start(self._lose(lost), name=f"lost/{lost.cluster}")

    @property
    def machine(self) -> Machine | None:
        """Give what runs the pods as processes, None where they are simulated."""
        return self._machine

    def _kubelet_of(self, cluster: str) -> KubeletFactory | None:
        machine = self._machine
        if machine is None:
            return None
        return lambda caches: ProcessKubelet(cluster, machine, caches)

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

    def _member(self, name: str) -> Kube | None:
        cluster = self._clusters.get(name)
        return None if cluster is None else cluster.kube

    async def failure(self) -> None:
        """Wait for a part to die, and raise what it died of; waits for ever while all are well."""
        assert self._control_plane is not None, "the sandbox is not started"
        parts = [self._control_plane.failure(), *(c.failure() for c in self._clusters.values())]
        if self._machine is not None:
            parts.append(self._machine.host.failure())
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
        if self.server is None:
            await _install_definitions(kube)
        return kube

    async def _lose(self, lost: LostCluster) -> None:
        """Let a member's API server stop listening, and listen again, at its times."""
        server = self._clusters[lost.cluster].server
        await asyncio.sleep(lost.at / self.config.speed)
        await server.stop_listening()
        if lost.back_at is not None:
            await asyncio.sleep((lost.back_at - lost.at) / self.config.speed)
            await server.start_listening()


async def _install_definitions(kube: Kube) -> None:
    definitions = control_plane_definitions()
    for definition in definitions:
        await kube.apply(CRDS, definition, field_manager=FIELD_MANAGER)
    for definition in definitions:
        name = definition["metadata"]["name"]
        for _ in range(_ESTABLISHED_TRIES):
            if _is_established(await kube.get(CRDS, name)):
                break
            await asyncio.sleep(_ESTABLISHED_PAUSE)
        else:
            raise TimeoutError(f"the API server does not establish {name}")


def _is_established(definition: Object) -> bool:
    return (find_condition(definition, "Established") or {}).get("status") == "True"
