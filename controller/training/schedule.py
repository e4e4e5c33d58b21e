"""Whose log is read next: fair among HyperJobs, and the programs that are known to report first.

Pure but for the time it is given; it starts nothing.
"""

import heapq
from collections import OrderedDict, deque
from enum import IntEnum
from typing import Final

Item = tuple[str, str]
"""Key of a HyperJob, name of a sub-job."""

_SEARCHES: Final = 4
"""One read of so many is a search at least, so that new programs are found under any load."""


class Lane(IntEnum):
    """What a read is for."""

    REPORT = 0
    SEARCH = 1


class Schedule:
    """Items and when they are due; among those due, HyperJobs take turns."""

    def __init__(self) -> None:
        self._due: dict[Item, tuple[float, Lane, int]] = {}
        self._heap: list[tuple[float, int, Item]] = []
        self._ready: dict[Lane, OrderedDict[str, deque[tuple[Item, int]]]] = {
            lane: OrderedDict() for lane in Lane
        }
        self._number = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._due)

    def put(self, item: Item, *, due: float, lane: Lane) -> None:
        """Set when an item is due; what was set before is forgotten."""
        self._number += 1
        self._due[item] = due, lane, self._number
        heapq.heappush(self._heap, (due, self._number, item))

    def remove(self, item: Item) -> None:
        """Forget an item."""
        self._due.pop(item, None)

    def take(self, now: float) -> Item | None:
        """Take the next item that is due; None where none is."""
        self._ripen(now)
        order = (Lane.REPORT, Lane.SEARCH)
        if self._taken % _SEARCHES == _SEARCHES - 1:
            order = (Lane.SEARCH, Lane.REPORT)
        for lane in order:
            while (item := self._next(self._ready[lane])) is not None:
                if item[1] == self._due.get(item[0], (0.0, lane, -1))[2]:
                    del self._due[item[0]]
                    self._taken += 1
                    return item[0]
        return None

    def wait(self, now: float) -> float | None:
        """Return the seconds until an item is due, None for never."""
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
                queue = self._ready[known[1]].setdefault(item[0], deque())
                queue.append((item, number))

    def _next(self, ready: OrderedDict[str, deque[tuple[Item, int]]]) -> tuple[Item, int] | None:
        """Take the first item of the HyperJob whose turn it is, which then goes to the end."""
        if not ready:
            return None
        key, items = ready.popitem(last=False)
        item = items.popleft()
        if items:
            ready[key] = items
        return item
