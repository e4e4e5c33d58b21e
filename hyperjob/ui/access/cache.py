"""Remember answers for a while: bounded in number and age, and asked for once at a time."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from hyperjob.tasks import cancel

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cached(Generic[K, V]):
    """Answers by key, each at most `seconds` old and at most `size` of them.

    Callers that ask for a key at the same time share one request, which goes on when one of them
    leaves. What raises is not remembered. The least used answer goes first.
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
        """Return the answer, a remembered one where it is fresh; raises what asking raises."""
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
        """Ask anew the next time."""
        self._known.pop(key, None)

    async def close(self) -> None:
        """Return up what is being asked."""
        await cancel(self._asked.values())

    async def _fetch(self, key: K) -> V:
        async with self._turn:
            asked = self._clock()  # no answer is newer than its question
            value = await self._ask(key)
        self._known[key] = (asked, value)
        self._known.move_to_end(key)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value

    def _answered(self, key: K, task: "asyncio.Task[V]") -> None:
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # the callers that wait get the error; there may be none left
