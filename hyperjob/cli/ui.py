"""`hyperjob ui`: the web page of clusters, queues and HyperJobs."""

import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hyperjob.cli.files import file_option, gathered
from hyperjob.cli.kubectl.access import Access, Parsed, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.cli.kubectl.output import remark
from hyperjob_core.kube.client import Kube

if TYPE_CHECKING:
    from hyperjob_page.visitor import VisitorAccess
    from hyperjob_page.world import LiveState

_ADDRESS: Final = "127.0.0.1:8765"


def _address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, or of a port of the loopback address; ValueError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError("give HOST:PORT or a port, such as 127.0.0.1:8765")
    return host, int(port)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorOptions:
    """The flags for access."""

    require_login: bool
    session_key_file: Path | None
    hosts: tuple[str, ...]
    read_only: bool

    def check(self, host: str) -> None:
        """Raise a usage error where flags conflict."""
        from hyperjob_page.access.local import is_loopback

        if self.require_login and not self.hosts:
            raise click.UsageError("--require-login needs --allowed-host, such as hj.example.org")
        for flag, given in (
            ("--allowed-host", self.hosts),
            ("--session-key-file", self.session_key_file),
        ):
            if given and not self.require_login:
                raise click.UsageError(f"{flag} needs --require-login")
        if not self.require_login and not is_loopback(host):
            raise click.UsageError(
                f"other machines can reach --listen {host}, and every visitor would have your"
                " rights: listen on 127.0.0.1, or use --require-login"
            )

    @property
    def key(self) -> bytes:
        """Return the key of the sessions, without a file that of this process; FailureError."""
        from hyperjob_page.access.cluster import KEY_BYTES

        if self.session_key_file is None:
            return secrets.token_bytes(KEY_BYTES)
        remedy = "`hyperjob credentials renew --account=hyperjob-ui=SECRET` writes one"
        try:
            key = self.session_key_file.read_bytes()
        except OSError as error:
            why = f"cannot read {self.session_key_file}: {error.strerror}"
            raise FailureError(f"{why}; {remedy}") from None
        if len(key) < KEY_BYTES:
            why = f"{self.session_key_file} has {len(key)} bytes, and a key at least {KEY_BYTES}"
            raise FailureError(f"{why}: {remedy}")
        return key

    @asynccontextmanager
    async def entrance(
        self, access: Access, kube: Kube, world: "LiveState"
    ) -> AsyncIterator["VisitorAccess"]:
        """Yield the access of visitors, which ends with the block."""
        from hyperjob_page.access.cluster import ClusterAccess, acting_as
        from hyperjob_page.access.local import LocalAccess

        if not self.require_login:
            async with LocalAccess(kube, read_only=self.read_only) as local:
                yield local
            return
        async with (
            acting_as(kubeconfig=access.kubeconfig, context=access.context) as acting,
            ClusterAccess(
                kube,
                acting=acting,
                key=self.key,
                hosts=self.hosts,
                namespaces=lambda: world.namespaces,
                read_only=self.read_only,
            ) as shared,
        ):
            yield shared


@click.command()
@access()
@click.option(
    "--listen",
    type=Parsed("address", _address),
    metavar="ADDRESS",
    help=f"HOST:PORT or a port to serve on.  [default: {_ADDRESS}, or a free port where it is in"
    " use]",
)
@click.option("--no-open", is_flag=True, help="Print the address and do not open a browser.")
@click.option("--read-only", is_flag=True, help="Refuse all changes of HyperJobs.")
@click.option(
    "--require-login",
    is_flag=True,
    help="Ask each visitor for a bearer token of the Karmada API server; the visitor has the"
    " rights of the token's user. The kubeconfig's user needs the ClusterRole hyperjob-ui.",
)
@file_option(
    "--session-key-file",
    text="File with the key of the sessions, at least 32 random bytes, with --require-login;"
    " processes with the same key share them. Without a file they end with this process.",
)
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Host name (NAME or NAME:PORT) under which visitors reach the page, with"
    " --require-login; may be given more than once.",
)
@click.option(
    "--metrics-bind-address",
    default="0",
    metavar="ADDRESS",
    help="HOST:PORT of /metrics, for Prometheus.  [default: none]",
)
@click.option(
    "--metrics-cert-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIRECTORY",
    help="Serve /metrics by HTTPS with tls.crt and tls.key of this directory, as the controller.",
)
@gathered("entry", VisitorOptions)
def ui(
    access: Access,
    listen: tuple[str, int] | None,
    no_open: bool,
    entry: VisitorOptions,
    metrics_bind_address: str,
    metrics_cert_dir: Path | None,
) -> None:
    """Show clusters, queues and HyperJobs in the browser, updated at every change.

    The page acts with the rights of the kubeconfig. The command serves the page to this machine
    only, at an address with a secret token. With --require-login it can serve other machines.

    Example: hyperjob ui --no-open
    """
    from hyperjob_core.serving.listener import listening
    from hyperjob_page.pages.answers import Context
    from hyperjob_page.serve import make_app, metrics_served
    from hyperjob_page.world import LiveState

    host, port = listen or _address(_ADDRESS)
    entry.check(host)

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(access.connect())
            world = await stack.enter_async_context(LiveState(kube).running())
            door = await stack.enter_async_context(entry.entrance(access, kube, world))
            context = Context(world=world, access=door, command=access.command)
            try:
                async with (
                    metrics_served(metrics_bind_address, metrics_cert_dir),
                    listening(make_app(context), host, port, other=listen is None) as (_, found),
                ):
                    address = door.listens_on(host, found)
                    _announce(address)
                    if not no_open and not entry.require_login:
                        click.launch(address)
                    await _until_stopped()
            except OSError as error:
                why = error.strerror and f"cannot listen on {host}:{port}: {error.strerror}"
                raise FailureError(why or str(error)) from None

    run(serve())


def _announce(address: str) -> None:
    click.echo(f"HyperJob: {address}")
    remark("Ctrl-C stops the server.")
    sys.stdout.flush()


async def _until_stopped() -> None:
    """Wait for SIGTERM; SIGINT cancels the event loop's main task without this function."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    try:
        await stop.wait()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
