"""`hyperjob ui`: the web page of clusters, queues and HyperJobs."""

import asyncio
import sys
from typing import Final

import click

from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code, FailureError, run
from hyperjob.cli.kubectl.output import remark

_ADDRESS: Final = "127.0.0.1:8765"


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, or a port of the loopback address."""

    name = "address"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Read it; a usage error says how it is written."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            self.fail("give HOST:PORT or a port, such as 127.0.0.1:8765", param, ctx)
        return host, int(port)


@click.command()
@access()
@click.option(
    "--listen",
    type=Address(),
    metavar="ADDRESS",
    help=f"HOST:PORT or a port to serve on.  [default: {_ADDRESS}, or a free port where it is in"
    " use]",
)
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="karmada-system",
    show_default=True,
    help="Namespace of the controller's Lease.",
)
def ui(
    access: Access,
    listen: tuple[str, int] | None,
    no_open: bool,
    read_only: bool,
    lease_namespace: str,
) -> None:
    """Show clusters, queues and HyperJobs in the browser, live.

    The page has the rights of the kubeconfig. It is served to this machine alone, and its address
    holds a token.

    Example: hyperjob ui --no-open
    """
    from hyperjob.ui.access.open import OpenAccess
    from hyperjob.ui.context import Context
    from hyperjob.ui.serve import serving
    from hyperjob.ui.world import World

    host, port = listen or Address().convert(_ADDRESS, None, None)

    async def serve() -> None:
        async with access.connect() as kube:
            world = World(kube, lease_namespace=lease_namespace)
            async with world.running() as known:
                context = Context(
                    world=known,
                    access=OpenAccess(kube, read_only=read_only),
                    read_only=read_only,
                    command=access.command,
                )
                try:
                    async with serving(context, host, port, other=listen is None) as found:
                        address = f"http://{host}:{found}/"
                        click.echo(f"HyperJob: {address}")
                        remark("Ctrl-C ends it.")
                        sys.stdout.flush()
                        if not no_open:
                            click.launch(address)
                        await asyncio.Event().wait()
                except OSError as error:
                    raise FailureError(
                        f"cannot listen on {host}:{port}: {error.strerror}", code=Code.FAILED
                    ) from None

    run(serve())
