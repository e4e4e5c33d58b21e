"""The order of log reads: namespaces take turns, and in a namespace its HyperJobs.

The last lines of pods that are being stopped come first, then pods that are known to report.
"""

import heapq
from collections import OrderedDict, deque
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
        # What counts is here. The items of the other two may be out of date: one counts if its
        # number is that of the item here. `_ripen` moves due items from the heap to their lane.
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
        """Move due items from the heap to their lanes; drop replaced and removed items."""
        while self._heap:
            due, number, item = self._heap[0]
            known = self._due.get(item)
            if known is not None and known[2] == number and due > now:
                return
            heapq.heappop(self._heap)
            if known is not None and known[2] == number:
                self._ready[known[1]].add(item, number)
