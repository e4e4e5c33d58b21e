"""The history: use of clusters and queues over time, and deleted HyperJobs."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from hyperjob.ui.charts.axis import TimeScale, ticks_of
from hyperjob.ui.charts.use import chart, fleet
from hyperjob.ui.history.recorder import History
from hyperjob.ui.history.use import Series
from hyperjob.ui.render import render
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import LiveState
from hyperjob_core.api.wire import at, string

RANGES: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_USUAL: Final = "24h"
_GONE: Final = 100
_CHARTS: Final = 200
_SECONDS: Final = 60
_LONGEST: Final = 256


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """The length of time to show, and the search text for deleted HyperJobs."""

    back: str = _USUAL
    words: str = ""

    def address(self, back: str) -> str:
        """Return the address of this page for another length of time."""
        given = {"range": back if back != _USUAL else "", "q": self.words}
        text = urlencode({name: value for name, value in given.items() if value})
        return f"/history?{text}" if text else "/history"


def asked(given: Sequence[tuple[str, str]]) -> HistoryQuery:
    """Parse the parameters of an address; invalid values count as absent."""
    found = {name: value[:_LONGEST] for name, value in reversed(given)}
    back = found.get("range", _USUAL)
    return HistoryQuery(back if back in RANGES else _USUAL, " ".join(found.get("q", "").split()))


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Use over time and deleted HyperJobs."""

    world: LiveState = field(compare=False)
    history: History = field(compare=False)
    scope: Scope
    asked: HistoryQuery = HistoryQuery()

    title = "History"
    section = "history"
    template = "history.html"

    @property
    def ranges(self) -> Sequence[str]:
        """Return the lengths of time that a visitor can choose."""
        return tuple(RANGES)

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return int(datetime.now(UTC).timestamp() // _SECONDS), self.world.version("gone")

    async def parts(self) -> Mapping[str, str]:
        """Return the charts and the table of deleted HyperJobs as HTML."""
        world, scope = self.world, self.scope
        until = datetime.now(UTC)
        scale = TimeScale(until - RANGES[self.asked.back], until)
        clusters: Sequence[Series] = ()
        queues: Sequence[Series] = ()
        if scope.clusters:
            clusters = await self.history.use("cluster", scale.begin, until)
        if scope.queues and scope.namespaces is None:  # the use includes all namespaces
            queues = await self.history.use("queue", scale.begin, until)
        gone = await self.history.gone(
            {row.summary.uid for row in world.rows.values()},
            scope.namespaces,
            self.asked.words,
            _GONE,
        )
        parents = {string(at(raw, "spec", "parent")) for raw in world.queues}
        leaves = [one for one in queues if one.name not in parents]
        shown = _with_accelerators(clusters)
        drawn = [chart(one, scale) for one in _with_accelerators(queues)[:_CHARTS]]
        return {
            "history-use": str(
                render(
                    "parts/use.html",
                    fleet=fleet(clusters, leaves, scale, world.colour),
                    clusters=[chart(one, scale) for one in shown[:_CHARTS]],
                    queues=[one for one in drawn if one.peak != "0"],
                    hidden=max(len(shown) - _CHARTS, 0),
                    ticks=ticks_of(scale),
                    colour=world.colour,
                    problem=self.history.problem,
                    visible=scope.clusters,
                )
            ),
            "history-gone": str(
                render(
                    "parts/gone.html",
                    gone=gone,
                    limit=_GONE,
                    words=self.asked.words,
                    colour=world.colour,
                )
            ),
        }


def _with_accelerators(found: Iterable[Series]) -> list[Series]:
    """Return the series with any used or allocatable accelerators."""
    return [one for one in found if any(point is not None and any(point) for point in one.points)]
