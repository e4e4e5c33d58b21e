"""The slots of concurrent API requests, divided fairly among namespaces and clusters.

A HyperJob of hundreds of sub-jobs may use every slot while no other HyperJob needs one. As soon as
another namespace waits, the next free slot goes to the namespace that holds the fewest.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hyperjob_core.kube.workqueue import Turns

_Turn = tuple[str, "asyncio.Future[None]"]
"""A cluster, and the future of a request that waits for a slot."""


class FairSlots:
    """A semaphore of `limit` slots, each held by a namespace, at most `of_cluster` for one cluster.

    Invariant: a request waits only while no slot is free or its cluster holds all of its own: a
    member that does not answer takes no slot of the others. `Turns` chooses the namespace of the
    next slot. Within a namespace requests for one cluster are in order of arrival.
    """

    def __init__(self, limit: int, *, of_cluster: int | None = None) -> None:
        self._free = limit
        self._of_cluster = limit if of_cluster is None else of_cluster
        self._clusters: Counter[str] = Counter()
        self._turns: Turns[_Turn] = Turns()

    def __len__(self) -> int:
        return len(self._turns)

    @asynccontextmanager
    async def of(self, namespace: str, cluster: str = "") -> AsyncIterator[None]:
        """Hold a slot for the length of the block."""
        await self._take(namespace, cluster)
        try:
            yield
        finally:
            self._leave(namespace, cluster)

    async def _take(self, namespace: str, cluster: str) -> None:
        """Take a free slot, or wait; a cancelled wait returns a slot that came with it."""
        if self._has_room(cluster):
            self._turns.hold(namespace)
            self._hold(cluster)
            return
        turn = cluster, asyncio.get_running_loop().create_future()
        self._turns.put(namespace, turn)
        try:
            await turn[1]
        except asyncio.CancelledError:
            if turn[1].done() and not turn[1].cancelled():
                self._leave(namespace, cluster)  # the slot came with the cancellation
            else:
                self._turns.discard(namespace, turn)
            raise

    def _has_room(self, cluster: str) -> bool:
        return self._free > 0 and self._clusters[cluster] < self._of_cluster

    def _hold(self, cluster: str) -> None:
        self._free -= 1
        self._clusters[cluster] += 1

    def _leave(self, namespace: str, cluster: str) -> None:
        self._turns.release(namespace)
        self._clusters[cluster] -= 1
        if not self._clusters[cluster]:
            del self._clusters[cluster]
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        """Give free slots to the next requests whose cluster has room."""
        while self._free > 0:
            turn = self._turns.take(lambda each: self._has_room(each[0]) and not each[1].done())
            if turn is None:
                return
            self._hold(turn[0])
            turn[1].set_result(None)
