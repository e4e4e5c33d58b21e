"""The order of log reads: who is next, and how many reads there are at a time.

Namespaces take turns, and in a namespace its HyperJobs. The last lines of pods that are being
stopped come first, then pods that are known to report.
"""

import asyncio
import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

Item = tuple[str, str]
"""Key of a HyperJob, name of a sub-job."""

_SEARCHES: Final = 4
"""At least one of so many reads is a search: new programs are found under any load."""


class Lane(IntEnum):
    """The purpose of a read: last lines, progress of a known pod, or the search for such a pod."""

    LAST = 0
    REPORT = 1
    SEARCH = 2


class _Turns:
    """Due items of one lane; namespaces take turns, and in a namespace its HyperJobs."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, OrderedDict[str, deque[tuple[Item, int]]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: Item, number: int) -> None:
        """Add an item behind those of its HyperJob."""
        hyperjobs = self._items.setdefault(item[0].partition("/")[0], OrderedDict())
        hyperjobs.setdefault(item[0], deque()).append((item, number))

    def next(self) -> tuple[Item, int] | None:
        """Remove and return the next item; None without items."""
        if not self._items:
            return None
        namespace, hyperjobs = self._items.popitem(last=False)
        key, items = hyperjobs.popitem(last=False)
        found = items.popleft()
        if items:
            hyperjobs[key] = items
        if hyperjobs:
            self._items[namespace] = hyperjobs
        return found


class Schedule:
    """The items and their due times. The caller passes the time; the schedule starts no task."""

    def __init__(self) -> None:
        self._due: dict[Item, tuple[float, Lane, int]] = {}
        self._heap: list[tuple[float, int, Item]] = []
        self._ready = {lane: _Turns() for lane in Lane}
        self._number = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._due)

    def put(self, item: Item, *, due: float, lane: Lane) -> None:
        """Set when an item is due, in place of an earlier due time."""
        self._number += 1
        self._due[item] = due, lane, self._number
        heapq.heappush(self._heap, (due, self._number, item))

    def remove(self, item: Item) -> None:
        """Remove an item."""
        self._due.pop(item, None)

    def take(self, now: float) -> Item | None:
        """Remove and return the next due item; None if none is due."""
        self._ripen(now)
        order = (Lane.LAST, Lane.REPORT, Lane.SEARCH)
        if self._taken % _SEARCHES == _SEARCHES - 1:
            order = (Lane.LAST, Lane.SEARCH, Lane.REPORT)
        for lane in order:
            while (item := self._ready[lane].next()) is not None:
                if item[1] == self._due.get(item[0], (0.0, lane, -1))[2]:
                    del self._due[item[0]]
                    self._taken += 1
                    return item[0]
        return None

    def wait(self, now: float) -> float | None:
        """Return the seconds until an item is due; None without items."""
        self._ripen(now)
        if any(self._ready.values()):
            return 0.0
        return max(0.0, self._heap[0][0] - now) if self._heap else None

    def _ripen(self, now: float) -> None:
        while self._heap:
            due, number, item = self._heap[0]
            known = self._due.get(item)
            if known is not None and known[2] == number and due > now:
                return
            heapq.heappop(self._heap)
            if known is not None and known[2] == number:
                self._ready[known[1]].add(item, number)


@dataclass(slots=True, eq=False)
class _Waiting:
    namespace: str
    cluster: str
    granted: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Shares:
    """A bound on what is done at a time, shared by namespaces and by clusters.

    A free place goes to the waiting namespace whose last place is the longest ago. A cluster has a
    bound of its own: a member that does not answer takes no place of the others.
    """

    def __init__(self, most: int, *, of_cluster: int) -> None:
        self._free = most
        self._of_cluster = of_cluster
        self._held: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []
        self._last: dict[str, int] = {}
        self._number = 0

    @asynccontextmanager
    async def place(self, namespace: str, cluster: str) -> AsyncIterator[None]:
        """Wait for a place, and have it."""
        mine = _Waiting(namespace, cluster)
        self._waiting.append(mine)
        self._grant()
        try:
            await mine.granted
            yield
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._free += 1
                self._held[cluster] -= 1
            self._grant()

    def _grant(self) -> None:
        """Grant free places while there is a waiting one whose cluster has room."""
        while self._free:
            able = [each for each in self._waiting if self._held[each.cluster] < self._of_cluster]
            if not able:
                break
            chosen = min(able, key=lambda each: self._last.get(each.namespace, 0))
            self._waiting.remove(chosen)
            self._free -= 1
            self._held[chosen.cluster] += 1
            self._number += 1
            self._last[chosen.namespace] = self._number
            if not chosen.granted.done():
                chosen.granted.set_result(None)
        self._held = +self._held
        if not self._waiting and not self._held:
            self._last.clear()
