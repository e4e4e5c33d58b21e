"""The end of asyncio tasks that their owner does not need any more."""

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel(tasks: "Iterable[asyncio.Future[Any]]") -> None:
    """Cancel tasks and wait until they have ended; what they return or raise is dropped."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
