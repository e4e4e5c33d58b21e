"""The use of clusters and queues over time: of the time of this process, or from Prometheus."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.resources import key_of
from hyperjob_page.charts.axis import Tick, ticks_of
from hyperjob_page.charts.use import Chart, chart, fleet, scale_of
from hyperjob_page.prometheus import Prometheus, PrometheusError
from hyperjob_page.render import render
from hyperjob_page.use import Series, UseMemory, UseOverTime
from hyperjob_page.visitor import Scope
from hyperjob_page.world import LiveState

RANGES: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_USUAL: Final = "24h"
_CHARTS: Final = 200
_SECONDS: Final = 15
_NONE: Final = UseOverTime((), ())


@dataclass(frozen=True, slots=True)
class UseSource:
    """Where use over time comes from; queues have no metrics in Prometheus."""

    memory: UseMemory
    prometheus: Prometheus | None = None


@dataclass(frozen=True, slots=True)
class UsePage:
    """Use over time; `back` is the length of time of clusters where Prometheus has them."""

    world: LiveState = field(compare=False)
    source: UseSource = field(compare=False)
    scope: Scope
    back: str = _USUAL

    title = "Use"
    section = "use"
    template = "use.html"

    @property
    def ranges(self) -> Sequence[str]:
        """Return the lengths of time that a visitor can choose."""
        return tuple(RANGES) if self.source.prometheus is not None else ()

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return int(datetime.now(UTC).timestamp() // _SECONDS)

    async def parts(self) -> Mapping[str, str]:
        """Return the charts as HTML."""
        scope, memory = self.scope, self.source.memory
        now = datetime.now(UTC)
        clusters, problem = await self._clusters(now) if scope.clusters else (_NONE, "")
        # The use of queues includes all namespaces.
        visible = scope.queues and scope.namespaces is None
        queues = memory.queues(now) if visible else _NONE
        known = _with_accelerators(clusters)
        parents = {string(at(raw, "spec", "parent")) for raw in self.world.queues}
        leaves = [one for one in queues.series if one.name not in parents]
        layers = leaves if clusters.times == queues.times else ()
        return {
            "use": str(
                render(
                    "parts/use.html",
                    fleet=fleet(clusters.times, known, layers, self.world.colour),
                    clusters=_charts(clusters, known),
                    queues=[
                        one
                        for one in _charts(queues, _with_accelerators(queues))
                        if one.peak != "0"
                    ],
                    hidden=max(len(known) - _CHARTS, 0),
                    ticks=_ticks(clusters),
                    queue_ticks=_ticks(queues),
                    begin=memory.begin,
                    chosen=self.source.prometheus is not None and not problem,
                    colour=self.world.colour,
                    problem=problem,
                    visible=scope.clusters,
                )
            )
        }

    async def _clusters(self, now: datetime) -> tuple[UseOverTime, str]:
        """Return the use of the present clusters, and why it is not that of Prometheus."""
        if self.source.prometheus is None:
            return self.source.memory.clusters(now), ""
        try:
            found = await self.source.prometheus.clusters(RANGES[self.back])
        except PrometheusError as error:
            return self.source.memory.clusters(now), str(error)
        # Prometheus may scrape the controllers of other Karmadas too.
        names = {key_of(raw) for raw in self.world.clusters}
        return UseOverTime(found.times, [one for one in found.series if one.name in names]), ""


def asked(given: Sequence[tuple[str, str]]) -> str:
    """Return the length of time in the parameters of an address; invalid values count as absent."""
    back = dict(given).get("range", _USUAL)
    return back if back in RANGES else _USUAL


def _with_accelerators(use: UseOverTime) -> list[Series]:
    """Return the series with any used or allocatable accelerators."""
    return [one for one in use.series if any(point and any(point) for point in one.points)]


def _charts(use: UseOverTime, series: Sequence[Series]) -> list[Chart]:
    return [chart(use.times, one) for one in series[:_CHARTS]]


def _ticks(use: UseOverTime) -> Sequence[Tick]:
    return ticks_of(scale_of(use.times)) if use.times else ()
