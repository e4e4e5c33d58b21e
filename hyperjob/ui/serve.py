"""Serve the page: to visitors of a host, or to this machine with the rights of one kubeconfig."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from hyperjob.ui.access.local import LocalAccess
from hyperjob.ui.app import make_app
from hyperjob.ui.connections import (
    CONNECTIONS,
    CONNECTIONS_PER_PEER,
    HEADER_SECONDS,
    PageProtocol,
)
from hyperjob.ui.pages.answers import Context
from hyperjob.ui.running import running
from hyperjob_core.kube.client import Kube
from hyperjob_core.serving.listener import OTHER_FILES, Listener, allow_files
from hyperjob_core.serving.table import Connection, ConnectionTable

LOOPBACK: Final = "127.0.0.1"
_SHUTDOWN_SECONDS: Final = 2.0


@asynccontextmanager
async def serving(
    context: Context,
    host: str,
    port: int,
    *,
    other: bool = False,
    header_seconds: float = HEADER_SECONDS,
) -> AsyncIterator[int]:
    """Serve for the length of the block; yield the port.

    `other`: use any free port where `port` is in use. Raises OSError when listening fails.
    """
    runner = web.AppRunner(
        make_app(context), shutdown_timeout=_SHUTDOWN_SECONDS, handle_signals=False
    )
    await runner.setup()
    server = runner.server
    assert server is not None, "the runner is set up"
    table = ConnectionTable(limit=CONNECTIONS, per_peer=CONNECTIONS_PER_PEER)

    def connect(connection: Connection) -> PageProtocol:
        return PageProtocol(server, connection, table=table, header_seconds=header_seconds)

    allow_files(CONNECTIONS + OTHER_FILES)
    listener = Listener(connect, table=table)
    try:
        try:
            _, found = listener.open(host, port)
        except OSError as error:
            if not (other and error.errno == errno.EADDRINUSE):
                raise
            _, found = listener.open(host, 0)
        yield found
    finally:
        listener.close()
        await runner.cleanup()


@asynccontextmanager
async def served_here(kube: Kube) -> AsyncIterator[str]:
    """Serve on a free port for the length of the block; yield the address with its token."""
    async with (
        running(kube) as known,
        LocalAccess(kube) as access,
    ):
        context = Context(
            world=known.world,
            history=known.history,
            attention=known.attention,
            access=access,
        )
        async with serving(context, LOOPBACK, 0) as port:
            yield access.listens_on(LOOPBACK, port)
