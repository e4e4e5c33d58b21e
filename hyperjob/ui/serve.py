"""Run the server of the page until it is cancelled."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from hyperjob.ui.app import make_app
from hyperjob.ui.pages.context import Context

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
