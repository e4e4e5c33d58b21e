"""The HyperJobs of a query in order, updated at each change. Pure."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from hyperjob.ui.query import Query
from hyperjob.ui.rows import Row
from hyperjob.ui.visitor import Scope
from hyperjob_core.api.phases import Phase
from hyperjob_engine.queueing.workload import OrderInQueue

_PHASES: Final = {str(phase): number for number, phase in enumerate(Phase)}
_Value: TypeAlias = int | str | OrderInQueue
_SortKey: TypeAlias = tuple[_Value, str]
OrderOf: TypeAlias = Callable[[Row], OrderInQueue]
"""Returns the place of a HyperJob in its queue."""
_LAST: Final = OrderInQueue(1 << 40, "", "")


class Listing:
    """The HyperJobs that match a query; `phases` counts without the query's filter of phases."""

    def __init__(self, query: Query, scope: Scope, rows: Iterable[Row], order_of: OrderOf) -> None:
        self.phases: Counter[str] = Counter()
        self._query = query
        self._scope = scope
        self._order_of = order_of
        self._by_key: dict[str, _SortKey] = {}
        for row in rows:
            if self._counts(row):
                self.phases[row.summary.phase] += 1
                if query.phase(row):
                    self._by_key[row.key] = self._sort_key(row)
        self._order = sorted(self._by_key.values())

    def __len__(self) -> int:
        return len(self._order)

    def change(self, old: Row | None, new: Row | None) -> None:
        """Apply a change of a HyperJob; None before its creation and after its deletion."""
        if old is not None and self._counts(old):
            self.phases[old.summary.phase] -= 1
            self._remove(old.key)
        if new is not None and self._counts(new):
            self.phases[new.summary.phase] += 1
            if self._query.phase(new):
                self._by_key[new.key] = found = self._sort_key(new)
                insort(self._order, found)

    def page(self, number: int, size: int, *, descending: bool) -> Sequence[str]:
        """Return the keys of a page, counted from 1; of the last page beyond the end."""
        first = (min(number, self.pages(size)) - 1) * size
        if not descending:
            return [key for _, key in self._order[first : first + size]]
        end = len(self._order) - first
        return [key for _, key in reversed(self._order[max(end - size, 0) : end])]

    def pages(self, size: int) -> int:
        """Return the number of pages, at least 1."""
        return max(1, -(-len(self._order) // size))

    def _counts(self, row: Row) -> bool:
        return self._scope.includes(row.summary.namespace) and self._query.but_phase(row)

    def _remove(self, key: str) -> None:
        before = self._by_key.pop(key, None)
        if before is not None:
            del self._order[bisect_left(self._order, before)]

    def _sort_key(self, row: Row) -> _SortKey:
        return self._value(row), row.key

    def _value(self, row: Row) -> _Value:
        summary = row.summary
        match self._query.sort:
            case "name":
                return summary.name
            case "phase":
                return _PHASES.get(summary.phase, len(_PHASES))
            case "ready":
                return -len(summary.jobs)
            case "accelerators":
                return -sum(row.accelerators.values())
            case "queue":
                return row.queues[0] if row.queues else ""
            case "place":
                return self._order_of(row) if row.waits_in else _LAST
            case "restarts":
                return -summary.restarts
            case _:
                return _newest_first(summary.created)


def _newest_first(time: str) -> str:
    """Return a text for an RFC 3339 time that sorts later times first."""
    return time.translate(_MIRRORED)


_MIRRORED: Final = str.maketrans("0123456789", "9876543210")
