"""Serve the page: to visitors of a host, or to this machine with the rights of one kubeconfig."""

import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from hyperjob.ui.access.local import LocalAccess
from hyperjob.ui.app import make_app
from hyperjob.ui.pages.answers import Context
from hyperjob.ui.running import running
from hyperjob_core.kube.client import Kube

LOOPBACK: Final = "127.0.0.1"
_SHUTDOWN_SECONDS: Final = 2.0


@asynccontextmanager
async def serving(
    context: Context, host: str, port: int, *, other: bool = False
) -> AsyncIterator[int]:
    """Serve for the length of the block; yield the port.

    `other`: use any free port where `port` is in use. Raises OSError when listening fails.
    """
    # An access log would have the token in the address.
    runner = web.AppRunner(
        make_app(context), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, handle_signals=False
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            if not (other and error.errno == errno.EADDRINUSE):
                raise
            await site.stop() if site in runner.sites else None
            site = web.TCPSite(runner, host, 0)
            await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served_here(kube: Kube, *, command: Callable[[str], str] = str) -> AsyncIterator[str]:
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
            command=command,
        )
        async with serving(context, LOOPBACK, 0) as port:
            yield access.listens_on(LOOPBACK, port)
