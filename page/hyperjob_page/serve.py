"""Serve the page: to visitors of a host, or to this machine with the rights of one kubeconfig."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from hyperjob_core.kube.client import Kube
from hyperjob_core.serving.listener import CONNECTIONS, HEADER_SECONDS, HTTP_LOG, Listener
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
async def served_here(kube: Kube) -> AsyncIterator[str]:
    """Serve on a free port for the length of the block; yield the address with its token."""
    async with (
        LiveState(kube).running() as world,
        LocalAccess(kube) as access,
        serving(Context(world=world, access=access), LOOPBACK, 0) as port,
    ):
        yield access.listens_on(LOOPBACK, port)
