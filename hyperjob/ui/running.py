"""Start the sources of pages: informers, the history, and the HyperJobs that need a person."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hyperjob.ui.attention import Attention
from hyperjob.ui.history.feed import fed
from hyperjob.ui.history.recorder import History
from hyperjob.ui.world import LiveState
from hyperjob_core.kube.client import Kube
from hyperjob_core.tasks import cancel


@dataclass(frozen=True, slots=True)
class Running:
    """The sources of pages, which update themselves."""

    world: LiveState
    history: History
    attention: Attention

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces that have or had HyperJobs."""
        return sorted({*self.world.namespaces, *self.history.namespaces})


@asynccontextmanager
async def running(
    kube: Kube, *, history: Path | None = None, examine: bool = True
) -> AsyncIterator[Running]:
    """Watch an API server for the length of the block; without a file the history is in memory.

    `examine` runs preflight periodically, for which an account needs more rights than `list`.
    """
    world = LiveState(kube)
    attention = Attention(world, kube, examine=examine)
    async with History(history) as kept, fed(kept, world, kube), world.running():
        judging = asyncio.create_task(attention.run())
        try:
            yield Running(world, kept, attention)
        finally:
            await cancel([judging])
