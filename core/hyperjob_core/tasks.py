"""Cancellation of asyncio tasks, and requests that run at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


async def at_once(
    ask: Callable[[_T], Awaitable[_R]], items: Iterable[_T], *, most: int
) -> list[_R]:
    """Call a coroutine function for each item, `most` at a time; return its results in order."""
    slots = asyncio.Semaphore(most)

    async def one(item: _T) -> _R:
        async with slots:
            return await ask(item)

    return list(await asyncio.gather(*map(one, items)))


async def cancel(tasks: "Iterable[asyncio.Future[Any]]") -> None:
    """Cancel tasks and wait for their end; their results and exceptions are dropped."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def apart(run: Awaitable[None]) -> None:
    """Await something in a task of its own, and end it before a cancellation goes on.

    For a loop that goes on after errors: a TaskGroup of Python 3.11 and 3.12, if it ends by an
    error, forgets a cancellation that came meanwhile, and the loop would never end.
    """
    task = asyncio.ensure_future(run)
    try:
        await asyncio.wait({task})
    finally:
        await cancel([task])
    task.result()
