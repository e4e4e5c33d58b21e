"""The query of the table of HyperJobs, as in the address of the page. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from hyperjob.ui.rows import Row
from hyperjob_core.api.phases import Phase

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
            (short, str(value))
            for short, value, usual in (
                ("q", self.search, plain.search),
                ("namespace", self.namespace, plain.namespace),
                ("queue", self.queue, plain.queue),
                ("cluster", self.cluster, plain.cluster),
                ("label", self.label, plain.label),
                ("sort", self.sort, plain.sort),
                ("page", self.page, plain.page),
                ("size", self.size, plain.size),
            )
            if value != usual
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
        page=min(_number(first.get("page"), 1), _PAGES),
        size=min(SIZES, key=lambda size: abs(size - _number(first.get("size"), 50))),
        columns=tuple(dict.fromkeys(("name", *columns))) if columns else DEFAULT,
    )


def _number(text: str | None, usual: int) -> int:
    if text and text.isascii() and text.isdigit() and len(text) < 9:
        return max(int(text), 1)
    return usual


def _labelled(labels: Mapping[str, str], wanted: str) -> bool:
    name, equals, value = wanted.partition("=")
    if not equals:
        return name in labels
    return labels.get(name) == value
