"""Start the embedded control plane, the webhook and the controller, and install HyperJob."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_install.execute import execute
from hyperjob_install.manifest import manifest
from hyperjob_install.plan import Change, plan
from hyperjob_install.problems import InstallError, problems_text
from hyperjob_install.settings import Settings
from hyperjob_sandbox.local.lifeline import Lifeline
from hyperjob_sandbox.local.parts import (
    PLANE_FILE,
    READY_FILE,
    StackError,
    StackProcess,
    part,
    run_once,
    until_file,
    until_ready,
)

_START_SECONDS: Final = 300.0
_LEASE_SECONDS: Final = 120
"""Lease duration of the controller, which other work on this machine may delay."""

_LOOK_SECONDS: Final = 0.5
_TRIES: Final = 3
_TAKEN: Final = "address already in use"
_PROGRESS_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneOptions:
    """The options of the plane; None is the value of the clusters file."""

    clusters: Path
    directory: Path
    volcano_global: bool | None = None
    pods: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    speed: float | None = None
    port: int = 0
    cluster_lost_seconds: float = 300.0

    def sandbox_command(self) -> list[str | Path]:
        """Return the command that starts the embedded control plane."""
        command: list[str | Path] = [sys.executable, "-m", "hyperjob", "sandbox", "up", "--bare"]
        command += ["--clusters", self.clusters, "--directory", self.directory]
        command += ["--port", str(self.port), "--ready-file", PLANE_FILE]
        if self.volcano_global is not None:
            command.append("--volcano-global" if self.volcano_global else "--no-volcano-global")
        if self.pods is not None:
            command += ["--pods", self.pods]
        for name, environment in self.images.items():
            command += ["--image", f"{name}={environment}"]
        if self.speed is not None:
            command += ["--speed", str(self.speed)]
        return command


@dataclass(frozen=True, slots=True)
class Plane:
    """A running plane; `installed` are the changes of `hyperjob install`."""

    kubeconfig: Path
    parts: Sequence[StackProcess]
    webhook_url: str
    installed: Sequence[Change]

    def check(self) -> None:
        """Raise StackError if a process has ended."""
        for running in self.parts:
            if running.process.returncode is not None:
                raise StackError(
                    f"{running.name} ended with {running.process.returncode};"
                    f" its log is {running.log}\n{running.tail()}"
                )

    async def failure(self) -> None:
        """Wait until a process ends, and raise StackError."""
        while True:
            self.check()
            await asyncio.sleep(_LOOK_SECONDS)


@contextlib.asynccontextmanager
async def local_plane(options: PlaneOptions, lifeline: Lifeline) -> AsyncIterator[Plane]:
    """Run a plane for the length of the block; raise StackError if a process does not start.

    All its processes belong to the group of `lifeline`.
    """
    directory, tls = options.directory, options.directory / "tls"
    kubeconfig = directory / "karmada.kubeconfig"
    ready, whole = directory / PLANE_FILE, directory / READY_FILE
    for file in (ready, whole):
        file.unlink(missing_ok=True)
    async with contextlib.AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(
            part(
                "control plane",
                *options.sandbox_command(),
                log=directory / "control-plane.log",
                group=lifeline.group,
                env={"TMPDIR": str(lifeline.folder)},
            )
        )
        await run_once(
            "certificates",
            *(sys.executable, "-m", "hyperjob_certs", "issue", "--directory", str(tls)),
            *("--name", "127.0.0.1", "--name", "localhost"),
            group=lifeline.group,
        )
        await until_file(sandbox, ready, seconds=_START_SECONDS)
        servers = await _servers(stack, options, lifeline)
        whole.touch()
        yield Plane(kubeconfig, (sandbox, *servers.parts), servers.url, servers.installed)


@dataclass(frozen=True, slots=True)
class _Servers:
    """The webhook and the controller."""

    parts: Sequence[StackProcess]
    url: str
    installed: Sequence[Change]


async def _servers(
    stack: contextlib.AsyncExitStack, options: PlaneOptions, lifeline: Lifeline
) -> _Servers:
    """Start webhook and controller; another process may take a port before they listen on it."""
    for left in range(_TRIES - 1, -1, -1):
        attempt = contextlib.AsyncExitStack()
        try:
            found = await _start_servers(attempt, options, lifeline)
        except StackError as error:
            await attempt.aclose()
            if not left or _TAKEN not in str(error):
                raise
        except BaseException:
            await attempt.aclose()
            raise
        else:
            stack.push_async_exit(attempt)
            return found
    raise AssertionError("the last attempt returns or raises")


async def _start_servers(
    stack: contextlib.AsyncExitStack, options: PlaneOptions, lifeline: Lifeline
) -> _Servers:
    """Start webhook and controller, install HyperJob, and wait until both are ready."""
    directory, tls = options.directory, options.directory / "tls"
    kubeconfig = directory / "karmada.kubeconfig"
    webhook_port, webhook_probe, metrics, probe = _free_ports(4)
    webhook = await stack.enter_async_context(
        part(
            "webhook",
            *(sys.executable, "-m", "hyperjob_webhook", "--bind-address=127.0.0.1"),
            f"--kubeconfig={kubeconfig}",
            f"--secure-port={webhook_port}",
            f"--tls-cert-file={tls / 'tls.crt'}",
            f"--tls-private-key-file={tls / 'tls.key'}",
            f"--health-probe-bind-address=127.0.0.1:{webhook_probe}",
            "--shutdown-delay=0",
            log=directory / "webhook.log",
            group=lifeline.group,
        )
    )
    controller = await stack.enter_async_context(
        part(
            "controller",
            *(sys.executable, "-m", "hyperjob_controller"),
            f"--kubeconfig={kubeconfig}",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
            f"--health-probe-bind-address=127.0.0.1:{probe}",
            f"--leader-elect-lease-duration={_LEASE_SECONDS}",
            f"--cluster-lost-timeout={options.cluster_lost_seconds:g}",
            "--members=logs",
            f"--progress-interval={_PROGRESS_SECONDS:g}",
            log=directory / "controller.log",
            group=lifeline.group,
        )
    )
    url = f"https://127.0.0.1:{webhook_port}"
    settings = Settings(url=url, ca_bundle=(tls / "ca.crt").read_bytes())
    installed, *_ = await asyncio.gather(
        _install(kubeconfig, settings),
        until_ready(webhook, ("127.0.0.1", webhook_probe), seconds=_START_SECONDS),
        until_ready(controller, ("127.0.0.1", probe), seconds=_START_SECONDS),
    )
    return _Servers((webhook, controller), url, installed)


async def _install(kubeconfig: Path, settings: Settings) -> list[Change]:
    async with Kube.connect(kubeconfig=kubeconfig) as kube:
        try:
            found = await plan(kube, manifest(settings))
            if found.problems:
                raise StackError(problems_text(found.problems))
            return [change async for change in execute(kube, found, webhook_wait=_START_SECONDS)]
        except (InstallError, KubeError) as error:
            raise StackError(f"install: {error}") from error


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
