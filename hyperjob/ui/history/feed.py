"""Lets the history take note of what the informers see."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from hyperjob.ui.history.recorder import History
from hyperjob.ui.rows import Row
from hyperjob.ui.visitor import EVERYTHING
from hyperjob.ui.world import World

SAMPLE_SECONDS: Final = 60.0


@asynccontextmanager
async def fed(history: History, world: World) -> AsyncIterator[History]:
    """Record all changes for the length of the block; enter it before the world runs."""

    def changed(before: Row | None, after: Row | None) -> None:
        now = datetime.now(UTC)
        if after is not None:
            history.record(now, after.summary)
        if before is not None and (after is None or after.summary.uid != before.summary.uid):
            history.removed(now, before.summary.uid)

    world.add_listener(changed)
    task = asyncio.create_task(_sample(history, world))
    try:
        yield history
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _sample(history: History, world: World) -> None:
    await world.synced()
    history.present(datetime.now(UTC), [row.summary.uid for row in world.rows.values()])
    while True:
        now = datetime.now(UTC)
        history.sample(now, world.cluster_uses(EVERYTHING), world.queue_uses(EVERYTHING))
        await asyncio.sleep(SAMPLE_SECONDS)
