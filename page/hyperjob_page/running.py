"""Start the sources of pages: informers, the use over time, the HyperJobs that need a person."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hyperjob_core.kube.client import Kube
from hyperjob_core.tasks import cancel
from hyperjob_page.attention import Attention
from hyperjob_page.pages.use import UseSource
from hyperjob_page.prometheus import Prometheus
from hyperjob_page.use import UseMemory
from hyperjob_page.visitor import EVERYTHING
from hyperjob_page.world import LiveState

_SAMPLE_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Running:
    """The sources of pages, which update themselves."""

    world: LiveState
    use: UseSource
    attention: Attention


@asynccontextmanager
async def running(
    kube: Kube, *, prometheus: str = "", examine: bool = True
) -> AsyncIterator[Running]:
    """Watch an API server for the length of the block; `prometheus` is a URL, or empty.

    `examine` runs preflight periodically, for which an account needs more rights than `list`.
    """
    world, memory = LiveState(kube), UseMemory()
    attention = Attention(world, kube, examine=examine)
    async with AsyncExitStack() as stack:
        asked = await stack.enter_async_context(Prometheus(prometheus)) if prometheus else None
        await stack.enter_async_context(world.running())
        tasks = [asyncio.create_task(attention.run()), asyncio.create_task(_sample(world, memory))]
        try:
            yield Running(world, UseSource(memory, asked), attention)
        finally:
            await cancel(tasks)


async def _sample(world: LiveState, memory: UseMemory) -> None:
    """Remember the present use every 15 seconds, without an end."""
    await world.synced()
    while True:
        now = datetime.now(UTC)
        memory.add(now, world.cluster_uses(EVERYTHING), world.queue_uses(EVERYTHING))
        await asyncio.sleep(_SAMPLE_SECONDS)
