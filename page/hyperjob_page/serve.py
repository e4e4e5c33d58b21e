"""Serve the page: to visitors of a host, or to this machine with the rights of one kubeconfig."""

import errno
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from hyperjob_core.kube.client import Kube
from hyperjob_core.serving.listener import CONNECTIONS, HEADER_SECONDS, HTTP_LOG, Listener
from hyperjob_core.telemetry.endpoints import Addresses, serve
from hyperjob_core.telemetry.health import Checks
from hyperjob_page.access.local import LocalAccess
from hyperjob_page.app import make_app
from hyperjob_page.pages.answers import Context
from hyperjob_page.world import LiveState

LOOPBACK: Final = "127.0.0.1"
_KEEPALIVE_SECONDS: Final = 75.0
_SHUTDOWN_SECONDS: Final = 2.0


@asynccontextmanager
async def serving(
    context: Context,
    host: str,
    port: int,
    *,
    other: bool = False,
    connections: int = CONNECTIONS,
    header_seconds: float = HEADER_SECONDS,
) -> AsyncIterator[int]:
    """Serve for the length of the block; yield the port.

    `other`: use any free port where `port` is in use. Raises OSError when listening fails.
    """
    runner = web.AppRunner(
        make_app(context),
        access_log=None,  # it would have the token
        logger=HTTP_LOG,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    server = runner.server
    assert server is not None, "the runner is set up"
    listener = Listener(server, connections=connections, header_seconds=header_seconds)
    try:
        try:
            _, found = await listener.open(host, port)
        except OSError as error:
            if not (other and error.errno == errno.EADDRINUSE):
                raise
            _, found = await listener.open(host, 0)
        yield found
    finally:
        listener.close()
        await runner.cleanup()


@asynccontextmanager
async def metrics_served(address: str, directory: Path | None) -> AsyncIterator[Addresses]:
    """Serve /metrics at an address, by HTTPS with the certificate of a directory; `0`: nowhere.

    Raises OSError with the flag: the address is in use, or the certificate is unusable.
    """
    async with AsyncExitStack() as stack:
        protected = None
        if directory is not None and address != "0":
            from hyperjob_certs.metrics import protection  # a slow import

            serving_pair = protection(directory, user_agent="hyperjob-ui")
            protected = await stack.enter_async_context(serving_pair)
        none = Checks("healthz")
        endpoints = serve(
            healthz=none,
            readyz=none,
            health_address="0",
            metrics_address=address,
            protection=protected,
        )
        yield await stack.enter_async_context(endpoints)


@asynccontextmanager
async def served_here(kube: Kube) -> AsyncIterator[str]:
    """Serve on a free port for the length of the block; yield the address with its token."""
    async with (
        LiveState(kube).running() as world,
        LocalAccess(kube) as access,
        serving(Context(world=world, access=access), LOOPBACK, 0) as port,
    ):
        yield access.listens_on(LOOPBACK, port)
