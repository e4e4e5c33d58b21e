"""A cache of answers, bounded in number and age, with one request at a time for each key."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from hyperjob_core.tasks import cancel

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cached(Generic[K, V]):
    """Answers by key, each at most `seconds` old and at most `size` of them.

    Concurrent callers for a key share one request, which continues when one of them is cancelled.
    The cache stores no errors, and evicts the least recently used answer.
    """

    def __init__(
        self,
        ask: Callable[[K], Awaitable[V]],
        *,
        seconds: float,
        size: int,
        clock: Callable[[], float],
        at_a_time: int = 16,
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asked: dict[K, asyncio.Task[V]] = {}
        self._turn = asyncio.Semaphore(at_a_time)

    def __len__(self) -> int:
        return len(self._known)

    async def get(self, key: K) -> V:
        """Return the answer, from the cache while it is fresh; raises the errors of the request."""
        found = self._known.get(key)
        if found is not None and self._clock() - found[0] < self._seconds:
            self._known.move_to_end(key)
            return found[1]
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._fetch(key))
            task.add_done_callback(lambda done: self._answered(key, done))
        return await asyncio.shield(task)

    def forget(self, key: K) -> None:
        """Remove a key: the next `get` makes a new request."""
        self._known.pop(key, None)

    async def close(self) -> None:
        """Cancel the requests in progress."""
        await cancel(self._asked.values())

    async def _fetch(self, key: K) -> V:
        """Make the request of a key when it is its turn, and store the answer."""
        async with self._turn:
            asked = self._clock()  # an answer is as old as its request
            value = await self._ask(key)
        self._known[key] = (asked, value)
        self._known.move_to_end(key)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value

    def _answered(self, key: K, task: "asyncio.Task[V]") -> None:
        """Forget a request that has ended; its error is no unhandled one."""
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # the waiting callers get the error, and there may be no caller left
