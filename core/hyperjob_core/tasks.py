"""Cancellation of asyncio tasks."""

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel(tasks: "Iterable[asyncio.Future[Any]]") -> None:
    """Cancel tasks and wait for their end; their results and exceptions are dropped."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
