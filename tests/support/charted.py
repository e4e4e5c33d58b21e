"""A host cluster and a Karmada with RBAC, into which Helm installs the chart."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CRDS, DEPLOYMENTS, NAMESPACES, SECRETS, Resource
from hyperjob_core.tasks import cancel
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.transport.authn import User
from hyperjob_sandbox.apiserver.transport.authorization import Action
from tests.support.controller import TIME_LIMIT
from tests.support.controlplane import cluster_bindings
from tests.support.embedded import ROOT
from tests.support.helm import CHART, NAMESPACE, RELEASE
from tests.support.kubelet import Kubelet
from tests.support.processes import free_port

Object = dict[str, Any]
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
KARMADA_CRDS = sorted((ROOT / "sandbox/hyperjob_sandbox/crds").glob("*.karmada.io_*.yaml"))
# The API server writes these objects itself, or deletes them after an hour.
_PASSING = {("", "events"), ("events.k8s.io", "events"), ("apiregistration.k8s.io", "apiservices")}


@dataclass
class Audit:
    """The requests of users, allowed and refused."""

    done: dict[str, set[Action]] = field(default_factory=lambda: defaultdict(set))
    refused: list[tuple[str, Action]] = field(default_factory=list)

    def __call__(self, user: User, action: Action, allowed: bool) -> None:
        if allowed:
            self.done[user.name].add(action)
        else:
            self.refused.append((user.name, action))


@dataclass
class World:
    """Both API servers, and the processes of the host cluster."""

    host: ApiServer
    karmada: ApiServer
    host_kube: Kube
    karmada_kube: Kube
    host_config: Path
    karmada_config: Path
    kubelet: Kubelet
    helm: Path
    directory: Path
    on_host: Audit
    on_karmada: Audit
    values: Object

    async def run_helm(self, *words: str, check: bool = True) -> str:
        """Run Helm against the host cluster."""
        process = await asyncio.create_subprocess_exec(
            *(self.helm, *words, f"--namespace={NAMESPACE}", f"--kubeconfig={self.host_config}"),
            env={"HOME": str(self.helm.parent), "PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(240):
            output, _ = await process.communicate()
        said = output.decode() + "".join(self.kubelet.output.values())
        assert (process.returncode == 0) is check, said
        return output.decode()

    async def release(self, verb: str, *, check: bool = True, **changes: Any) -> str:
        """Install or upgrade the release, with changed top-level values."""
        file = self.directory / "values.yaml"
        file.write_text(yaml.safe_dump({**self.values, **changes}))
        words = (verb, RELEASE, str(CHART), f"--values={file}", "--timeout=200s")
        webhook = asyncio.create_task(self._run_webhook())
        try:
            return await self.run_helm(*words, check=check)
        finally:
            await cancel([webhook])

    async def _run_webhook(self) -> None:
        """Run a pod of the webhook's Deployment as soon as it exists, unless one runs already."""
        port = urlsplit(self.values["webhook"]["url"]).port
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        found: Object | None = None
        while found is None:
            await asyncio.sleep(0.2)
            with contextlib.suppress(NotFound):
                name = f"{RELEASE}-webhook"
                found = await self.host_kube.get(DEPLOYMENTS, name, namespace=NAMESPACE)
        flags = ("--bind-address=127.0.0.1", f"--secure-port={port}", "--shutdown-delay=0")
        async with deployment(self, found, *flags):
            await asyncio.Event().wait()

    async def renew(self) -> None:
        """Run the renewal Job once."""
        cronjob = await self.host_kube.get(CRONJOBS, f"{RELEASE}-renewal", namespace=NAMESPACE)
        spec = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        assert await self.kubelet.pod("renewal", spec), self.kubelet.output

    def contents(self) -> dict[str, set[tuple[str, str, str, str]]]:
        """Return the names of all objects in both API servers."""
        return {
            name: {
                (*resource, *key)
                for resource in server.store.resources()
                if resource not in _PASSING
                for key in (stored.key for stored in server.store.collection(resource).select())
            }
            for name, server in (("host", self.host), ("karmada", self.karmada))
        }


@asynccontextmanager
async def world(helm: Path, directory: Path) -> AsyncIterator[World]:
    """Run both API servers and a kubelet, without HyperJob."""
    on_host, on_karmada = Audit(), Audit()
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(ApiServer(name="host", rbac=True, audit=on_host))
        karmada = await stack.enter_async_context(ApiServer(rbac=True, audit=on_karmada))
        configs = [
            server.kubeconfig(directory / f"{server.name}.config") for server in (host, karmada)
        ]
        kubes = [await stack.enter_async_context(Kube.connect(kubeconfig=path)) for path in configs]
        for kube in kubes:
            await kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        for path in (*KARMADA_CRDS, cluster_bindings(directory)):
            await kubes[1].create(CRDS, yaml.safe_load(path.read_text()))
        # the Secret of Karmada's own chart
        secret = {"name": "karmada-kubeconfig", "namespace": NAMESPACE}
        text = configs[1].read_text()
        await kubes[0].create(SECRETS, {"metadata": secret, "stringData": {"kubeconfig": text}})
        kubelet = Kubelet(kubes[0], configs[0], namespace=NAMESPACE, directory=directory / "pods")
        await stack.enter_async_context(kubelet.running())
        port = free_port()
        yield World(
            host=host,
            karmada=karmada,
            host_kube=kubes[0],
            karmada_kube=kubes[1],
            host_config=configs[0],
            karmada_config=configs[1],
            kubelet=kubelet,
            helm=helm,
            directory=directory,
            on_host=on_host,
            on_karmada=on_karmada,
            values={
                "webhook": {"url": f"https://127.0.0.1:{port}"},
                "controller": {"queueAdmission": "none"},
                "metrics": {
                    "serviceMonitor": {"enabled": False},
                    "dashboard": {"enabled": True},
                },
            },
        )


@asynccontextmanager
async def deployment(world: World, deployed: Object, *flags: str) -> AsyncIterator[Path]:
    """Run one pod of a Deployment until the end of the block; it is ready inside.

    Yields the directory of the pod.
    """
    spec = deployed["spec"]["template"]["spec"]
    log = world.directory / f"{deployed['metadata']['name']}.log"
    port = free_port()
    ours = [
        f"--health-probe-bind-address=127.0.0.1:{port}",
        "--metrics-bind-address=0",
        *flags,
    ]
    root = await world.kubelet.root(spec)
    process = await world.kubelet.start(root, spec, spec["containers"][0], *ours, log=log)
    try:
        async with asyncio.timeout(TIME_LIMIT):
            while not await _ready(port):
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.1)
        yield root
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(port: int) -> bool:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            return b" 200 " in await reader.readuntil(b"\r\n")
        finally:
            writer.close()
    return False
