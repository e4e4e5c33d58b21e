"""The slots of concurrent API requests, divided fairly among namespaces.

A HyperJob of hundreds of sub-jobs may use every slot while no other HyperJob needs one. As soon as
another namespace waits, the next free slot goes to the namespace that holds the fewest.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """A semaphore of `limit` slots, each held by a namespace.

    Invariant: a namespace waits only while no slot is free. The next slot is for the waiting
    namespace with the fewest slots; of equal ones, for the namespace whose last slot is older.
    Within a namespace requests are in order of arrival.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def of(self, namespace: str) -> AsyncIterator[None]:
        """Hold a slot for the length of the block."""
        await self._take(namespace)
        try:
            yield
        finally:
            self._leave(namespace)

    async def _take(self, namespace: str) -> None:
        if self._free:
            self._free -= 1
            self._held[namespace] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(namespace)  # the slot came with the cancellation
            else:
                self._forget(namespace, turn)
            raise

    def _leave(self, namespace: str) -> None:
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        """Give the free slot to the next namespace; a cancelled request takes none."""
        while self._free and self._waiting:
            # `min` returns the first of equals, and the last served namespace is the last one.
            namespace = min(self._waiting, key=self._held.__getitem__)
            queue = self._waiting.pop(namespace)
            turn = queue.popleft()
            if queue:
                self._waiting[namespace] = queue
            if not turn.done():
                self._free -= 1
                self._held[namespace] += 1
                turn.set_result(None)

    def _forget(self, namespace: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(namespace)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[namespace]
