"""The table of HyperJobs: the query in the address, and the HyperJobs in its order. Pure."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from hyperjob_core.api.phases import Phase
from hyperjob_page.rows import Row
from hyperjob_page.visitor import Scope
from hyperjob_queueing.workload import OrderInQueue

COLUMNS: Final[Mapping[str, str]] = {
    "name": "HyperJob",
    "phase": "Phase",
    "progress": "Progress",
    "ready": "Sub-jobs",
    "accelerators": "Accelerators",
    "clusters": "Clusters",
    "queue": "Queue",
    "place": "In line",
    "reason": "Reason",
    "restarts": "Restarts",
    "age": "Age",
}
"""Columns and their headings, in order."""

SORTS: Final = ("name", "phase", "ready", "accelerators", "queue", "place", "restarts", "age")
DEFAULT: Final = tuple(name for name in COLUMNS if name != "restarts")
SIZES: Final = (25, 50, 100, 200)
_LONGEST: Final = 256
_PAGES: Final = 100_000


_PARAMETERS: Final[Mapping[str, str]] = {
    "q": "search",
    **{name: name for name in ("namespace", "queue", "cluster", "label", "sort", "page", "size")},
}
"""The parameters of an address with one value, and their fields of a Query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Filters, order and page; an empty filter matches every HyperJob. `label` is key=value."""

    search: str = ""
    namespace: str = ""
    queue: str = ""
    cluster: str = ""
    label: str = ""
    phases: tuple[str, ...] = ()
    sort: str = "age"
    descending: bool = False
    page: int = 1
    size: int = 50
    columns: tuple[str, ...] = DEFAULT

    @property
    def is_filtered(self) -> bool:
        """Return whether the query has a filter."""
        return self.unfiltered != self

    @property
    def unfiltered(self) -> "Query":
        """Return the query without filters."""
        return replace(self, search="", namespace="", queue="", cluster="", label="", phases=())

    @property
    def unpaged(self) -> "Query":
        """Return the query without its page: the filters and the order."""
        plain = Query()
        return replace(self, page=plain.page, size=plain.size, columns=(), descending=False)

    def but_phase(self, row: Row) -> bool:
        """Return whether a HyperJob matches all filters except the filter of phases."""
        if self.namespace and row.summary.namespace != self.namespace:
            return False
        if self.queue and self.queue not in row.queues:
            return False
        if self.cluster and self.cluster not in row.summary.clusters:
            return False
        if self.label and not _labelled(row.labels, self.label):
            return False
        return all(word in row.search for word in self.search.lower().split())

    def phase(self, row: Row) -> bool:
        """Return whether a HyperJob matches the filter of phases."""
        return not self.phases or row.summary.phase in self.phases

    def but(self, **changes: Any) -> str:  # noqa: ANN401 - fields of its own
        """Return the address of the table after a change of its fields, on its first page."""
        return replace(self, **{"page": 1, **changes}).address

    @property
    def address(self) -> str:
        """Return the address of the table."""
        words = urlencode(self.parameters)
        return f"/hyperjobs?{words}" if words else "/hyperjobs"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return name and value of each field that is not at its default."""
        plain = Query()
        found = [
            (short, str(getattr(self, name)))
            for short, name in _PARAMETERS.items()
            if getattr(self, name) != getattr(plain, name)
        ]
        found += [("phase", phase) for phase in self.phases]
        if self.descending:
            found.append(("desc", "1"))
        if self.columns != DEFAULT:
            found += [("col", name) for name in self.columns]
        return found


def parse(given: Sequence[tuple[str, str]]) -> Query:
    """Parse the parameters of an address; invalid values count as absent."""
    first = {name: value[:_LONGEST] for name, value in reversed(given)}
    several: dict[str, list[str]] = {}
    for name, value in given:
        several.setdefault(name, []).append(value)
    phases = tuple(str(each) for each in Phase if each in several.get("phase", ()))
    columns = tuple(name for name in COLUMNS if name in several.get("col", ()))
    sort = first.get("sort", "age")
    return Query(
        search=" ".join(first.get("q", "").split()),
        namespace=first.get("namespace", "").strip(),
        queue=first.get("queue", "").strip(),
        cluster=first.get("cluster", "").strip(),
        label=first.get("label", "").strip(),
        phases=phases,
        sort=sort if sort in SORTS else "age",
        descending=first.get("desc") == "1",
        page=min(_positive(first.get("page"), 1), _PAGES),
        size=min(SIZES, key=lambda size: abs(size - _positive(first.get("size"), 50))),
        columns=tuple(dict.fromkeys(("name", *columns))) if columns else DEFAULT,
    )


def _positive(text: str | None, usual: int) -> int:
    if text and text.isascii() and text.isdigit() and len(text) < 9:
        return max(int(text), 1)
    return usual


def _labelled(labels: Mapping[str, str], wanted: str) -> bool:
    name, equals, value = wanted.partition("=")
    if not equals:
        return name in labels
    return labels.get(name) == value


_PHASES: Final = {str(phase): number for number, phase in enumerate(Phase)}
_Value: TypeAlias = int | str | OrderInQueue
_SortKey: TypeAlias = tuple[_Value, str]
OrderOf: TypeAlias = Callable[[Row], OrderInQueue]
"""Returns the place of a HyperJob in its queue."""
_LAST: Final = OrderInQueue(1 << 40, True, "", "")


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
        """Return the value by which the query sorts; smaller values come first."""
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
                return summary.created.translate(_MIRRORED)  # the newest first


_MIRRORED: Final = str.maketrans("0123456789", "9876543210")
