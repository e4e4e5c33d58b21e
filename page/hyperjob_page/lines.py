"""The waiting HyperJobs of each queue, in the order of the queue engine. Pure."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from hyperjob_core.api.meta import Object
from hyperjob_engine.queueing.workload import OrderInQueue
from hyperjob_page.rows import Row, order_of


class QueueLines:
    """The waiting HyperJobs by queue; `classes` are the PriorityClasses by name, for the order."""

    def __init__(self) -> None:
        self.classes: Mapping[str, Object] = {}
        self._lines: dict[str, list[OrderInQueue]] = {}
        self._waiting: dict[str, tuple[str, OrderInQueue]] = {}

    def change(self, key: str, row: Row | None) -> None:
        """Apply a change of a HyperJob; None after its deletion."""
        before = self._waiting.pop(key, None)
        if before is not None:
            queue, order = before
            line = self._lines[queue]
            del line[bisect_left(line, order)]
            if not line:
                del self._lines[queue]
        if row is not None and row.waits_in:
            order = order_of(row, self.classes)
            insort(self._lines.setdefault(row.waits_in, []), order)
            self._waiting[key] = row.waits_in, order

    def place(self, key: str) -> int:
        """Return the place of a HyperJob in its queue, from 1; 0 if it does not wait."""
        found = self._waiting.get(key)
        if found is None:
            return 0
        queue, order = found
        return bisect_left(self._lines[queue], order) + 1

    def length(self, queue: str) -> int:
        """Return the number of HyperJobs that wait in a queue."""
        return len(self._lines.get(queue, ()))

    def line(self, queue: str) -> Sequence[OrderInQueue]:
        """Return the waiting HyperJobs of a queue in order; each ends with namespace/name."""
        return self._lines.get(queue, ())
