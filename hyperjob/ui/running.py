"""Start what pages are made from: informers, the history, and the list of what needs a person."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hyperjob.kube.client import Kube
from hyperjob.tasks import cancel
from hyperjob.ui.attention import Attention
from hyperjob.ui.history.feed import fed
from hyperjob.ui.history.recorder import History
from hyperjob.ui.world import World


@dataclass(frozen=True, slots=True)
class Running:
    """What is known, and kept up to date."""

    world: World
    history: History
    attention: Attention

    @property
    def namespaces(self) -> list[str]:
        """List the namespaces that have HyperJobs, or had them."""
        return sorted({*self.world.namespaces, *self.history.namespaces})


@asynccontextmanager
async def running(
    kube: Kube, *, lease_namespace: str, history: Path | None = None, examine: bool = True
) -> AsyncIterator[Running]:
    """Follow an API server for the length of the block; without a file, history is in memory.

    `examine` runs preflight now and then, which an account that may only list cannot.
    """
    world = World(kube, lease_namespace=lease_namespace)
    attention = Attention(world, kube, examine=examine)
    async with History(history) as kept, fed(kept, world, kube), world.running():
        judging = asyncio.create_task(attention.run())
        try:
            yield Running(world, kept, attention)
        finally:
            await cancel([judging])
