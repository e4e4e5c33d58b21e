"""`hyperjob ui`: the web page of clusters, queues and HyperJobs."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import click

from hyperjob.cli.files import file_option
from hyperjob.cli.kubectl.access import Access, Parsed, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.cli.kubectl.output import remark

_ADDRESS: Final = "127.0.0.1:8765"


def _address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, or of a port of the loopback address; ValueError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError("give HOST:PORT or a port, such as 127.0.0.1:8765")
    return host, int(port)


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
def ui(
    access: Access,
    listen: tuple[str, int] | None,
    no_open: bool,
    read_only: bool,
    require_login: bool,
    session_key_file: Path | None,
    hosts: tuple[str, ...],
    metrics_bind_address: str,
    metrics_cert_dir: Path | None,
) -> None:
    """Show clusters, queues and HyperJobs in the browser, updated at every change.

    The page acts with the rights of the kubeconfig. The command serves the page to this machine
    only, at an address with a secret token. With --require-login it can serve other machines.

    Example: hyperjob ui --no-open
    """
    from hyperjob.cli.ui.visitors import VisitorOptions, entrance
    from hyperjob_core.serving.listener import listening
    from hyperjob_page.pages.answers import Context
    from hyperjob_page.serve import make_app, metrics_served
    from hyperjob_page.world import LiveState

    host, port = listen or _address(_ADDRESS)
    entry = VisitorOptions(
        kubeconfig=access.kubeconfig,
        context=access.context,
        require_login=require_login,
        session_key=session_key_file,
        hosts=hosts,
        read_only=read_only,
    )
    entry.check(host)

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(access.connect())
            world = await stack.enter_async_context(LiveState(kube).running())
            door = await stack.enter_async_context(entrance(entry, kube, world))
            context = Context(world=world, access=door, command=access.command)
            try:
                async with (
                    metrics_served(metrics_bind_address, metrics_cert_dir),
                    listening(make_app(context), host, port, other=listen is None) as (_, found),
                ):
                    address = door.listens_on(host, found)
                    _announce(address)
                    if not no_open and not require_login:
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
