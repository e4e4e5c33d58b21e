"""The slots of concurrent API requests, divided fairly among namespaces and clusters.

A HyperJob of hundreds of sub-jobs may use every slot while no other HyperJob needs one. As soon as
another namespace waits, the next free slot goes to the namespace that holds the fewest.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_Turn = tuple[str, "asyncio.Future[None]"]
"""A cluster, and the future of a request that waits for a slot."""


class FairSlots:
    """A semaphore of `limit` slots, each held by a namespace, at most `of_cluster` for one cluster.

    Invariant: a request waits only while no slot is free or its cluster holds all of its own: a
    member that does not answer takes no slot of the others. The next slot is for the waiting
    namespace with the fewest slots; of equal ones, for the namespace whose last slot is older.
    Within a namespace requests for one cluster are in order of arrival.
    """

    def __init__(self, limit: int, *, of_cluster: int | None = None) -> None:
        self._free = limit
        self._of_cluster = limit if of_cluster is None else of_cluster
        self._held: Counter[str] = Counter()
        self._clusters: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Turn]] = {}

    @asynccontextmanager
    async def of(self, namespace: str, cluster: str = "") -> AsyncIterator[None]:
        """Hold a slot for the length of the block."""
        await self._take(namespace, cluster)
        try:
            yield
        finally:
            self._leave(namespace, cluster)

    async def _take(self, namespace: str, cluster: str) -> None:
        if self._has_room(cluster):
            self._hold(namespace, cluster)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append((cluster, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(namespace, cluster)  # the slot came with the cancellation
            else:
                self._forget(namespace, (cluster, turn))
            raise

    def _has_room(self, cluster: str) -> bool:
        return self._free > 0 and self._clusters[cluster] < self._of_cluster

    def _hold(self, namespace: str, cluster: str) -> None:
        self._free -= 1
        self._held[namespace] += 1
        self._clusters[cluster] += 1

    def _leave(self, namespace: str, cluster: str) -> None:
        for held, name in ((self._held, namespace), (self._clusters, cluster)):
            held[name] -= 1
            if not held[name]:
                del held[name]
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        """Give free slots to the next namespaces; a cancelled request takes none."""
        while (found := self._next()) is not None:
            namespace, (cluster, turn) = found
            queue = self._waiting.pop(namespace)
            queue.remove((cluster, turn))
            if queue:
                self._waiting[namespace] = queue
            if not turn.done():
                self._hold(namespace, cluster)
                turn.set_result(None)

    def _next(self) -> "tuple[str, _Turn] | None":
        """Return the next request, and its namespace; None without one whose cluster has room."""
        # `sorted` keeps the order of equals, and the last served namespace is the last one.
        for namespace in sorted(self._waiting, key=self._held.__getitem__) if self._free else ():
            for turn in self._waiting[namespace]:
                if self._has_room(turn[0]):
                    return namespace, turn
        return None

    def _forget(self, namespace: str, turn: "_Turn") -> None:
        queue = self._waiting.get(namespace)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[namespace]
