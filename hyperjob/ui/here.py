"""Serve the page to this machine, with the rights of one kubeconfig."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from hyperjob.ui.access.local import LocalAccess
from hyperjob.ui.pages.context import Context
from hyperjob.ui.running import running
from hyperjob.ui.serve import serving
from hyperjob_core.kube.client import Kube

LOOPBACK: Final = "127.0.0.1"


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
