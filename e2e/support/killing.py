"""Kills of the controller at random moments; `HYPERJOB_CHAOS_SEED` repeats a run.

The kills have an end: a controller that starts as slowly as it is killed would never get on.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator

from tests.support.stack import Service

SEED = int(os.environ.get("HYPERJOB_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
KILLS = int(os.environ.get("HYPERJOB_CHAOS_KILLS", "6"))


@contextlib.asynccontextmanager
async def killing(controller: Service, moments: random.Random) -> AsyncIterator[None]:
    """Kill the controller at random moments and start it again, until the block ends."""

    async def kill() -> None:
        for _ in range(KILLS):
            await asyncio.sleep(moments.uniform(0.05, 2.5))
            controller.kill()
            await asyncio.to_thread(controller.start)

    task = asyncio.create_task(kill())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        if controller.process is None:
            await asyncio.to_thread(controller.start)
