"""The order of log reads: namespaces take turns, and in a namespace its HyperJobs.

The last lines of pods that are being stopped come first, then pods that are known to report.
"""

import heapq
from collections import OrderedDict, deque
from enum import IntEnum
from typing import Final, NamedTuple

Item = tuple[str, str]
"""Key of a HyperJob, name of a sub-job."""

_SEARCHES: Final = 4
"""At least one of so many reads is a search: new programs are found under any load."""


class Lane(IntEnum):
    """The purpose of a read: last lines, progress of a known pod, or the search for such a pod."""

    LAST = 0
    REPORT = 1
    SEARCH = 2


class _Entry(NamedTuple):
    """An item with its due time and lane; `number` differs from that of each later entry."""

    item: Item
    due: float
    lane: Lane
    number: int


class _Turns:
    """Due entries of one lane; namespaces take turns, and in a namespace its HyperJobs."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, OrderedDict[str, deque[_Entry]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, entry: _Entry) -> None:
        """Add an entry behind those of its HyperJob."""
        key, _ = entry.item
        hyperjobs = self._items.setdefault(key.partition("/")[0], OrderedDict())
        hyperjobs.setdefault(key, deque()).append(entry)

    def next(self) -> _Entry | None:
        """Remove and return the next entry; None without entries."""
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
        # The present entry of each item. The heap and the lanes may also have former entries, which
        # do not count. `_ripen` moves due entries from the heap to their lane.
        self._present: dict[Item, _Entry] = {}
        self._heap: list[tuple[float, int, _Entry]] = []
        self._ready = {lane: _Turns() for lane in Lane}
        self._number = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._present)

    def put(self, item: Item, *, due: float, lane: Lane) -> None:
        """Set when an item is due, in place of an earlier due time."""
        self._number += 1
        entry = self._present[item] = _Entry(item, due, lane, self._number)
        heapq.heappush(self._heap, (due, entry.number, entry))

    def remove(self, item: Item) -> None:
        """Remove an item."""
        self._present.pop(item, None)

    def take(self, now: float) -> Item | None:
        """Remove and return the next due item; None if none is due."""
        self._ripen(now)
        order = (Lane.LAST, Lane.REPORT, Lane.SEARCH)
        if self._taken % _SEARCHES == _SEARCHES - 1:
            order = (Lane.LAST, Lane.SEARCH, Lane.REPORT)
        for lane in order:
            while (entry := self._ready[lane].next()) is not None:
                if self._is_present(entry):
                    del self._present[entry.item]
                    self._taken += 1
                    return entry.item
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
            due, _, entry = self._heap[0]
            is_present = self._is_present(entry)
            if is_present and due > now:
                return
            heapq.heappop(self._heap)
            if is_present:
                self._ready[entry.lane].add(entry)

    def _is_present(self, entry: _Entry) -> bool:
        return self._present.get(entry.item) is entry
