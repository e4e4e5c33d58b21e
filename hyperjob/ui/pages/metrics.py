"""The metrics of HyperJobs as curves: of one, or of several over each other."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlencode

from hyperjob.ui.charts.curves import Axis, Run, charts
from hyperjob.ui.history.recorder import History
from hyperjob.ui.render import render
from hyperjob.ui.rows import Row
from hyperjob.ui.visitor import Scope
from hyperjob.ui.world import LiveState

RUNS: Final = 12
"""Most HyperJobs over each other."""
_LONGEST: Final = 320
_SWEEP: Final = "sweep"


@dataclass(frozen=True, slots=True)
class MetricsQuery:
    """The HyperJobs to compare by namespace/name, or the sweep that has them, and the axis."""

    runs: tuple[str, ...] = ()
    sweep: str = ""
    axis: Axis = "step"

    def address(self, axis: Literal["step", "time"]) -> str:
        """Return the address of this page with another axis."""
        given = [("run", run) for run in self.runs]
        given += [("sweep", self.sweep)] if self.sweep else []
        given += [("axis", axis)] if axis != "step" else []
        return f"/metrics?{urlencode(given)}"


def asked(given: Sequence[tuple[str, str]]) -> MetricsQuery:
    """Parse the parameters of an address; invalid values count as absent."""
    runs = dict.fromkeys(
        each[:_LONGEST].strip()
        for name, value in given
        if name == "run"
        for each in value.split(",")
        if each.strip()
    )
    found = dict(reversed(given))
    axis: Axis = "time" if found.get("axis") == "time" else "step"
    return MetricsQuery(tuple(runs)[:RUNS], found.get("sweep", "")[:63], axis)


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The curves of several HyperJobs."""

    world: LiveState = field(compare=False)
    history: History = field(compare=False)
    scope: Scope
    asked: MetricsQuery = MetricsQuery()

    title = "Metrics"
    section = "hyperjobs"
    template = "metrics.html"
    axes: Sequence[Axis] = ("step", "time")

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        if self.asked.sweep:
            return self.world.version("hyperjobs"), self.history.log_reads
        revision = self.history.revision
        return tuple((row.key, row.version, revision(row.summary.uid)) for row in self.training())

    async def parts(self) -> Mapping[str, str]:
        """Return the charts as HTML."""
        rows = self.training()
        return {
            "metrics-curves": await curves_of(
                self.history, rows, self.asked.axis, colours=range(len(rows)), legend=True
            )
        }

    def training(self) -> list[Row]:
        """Return the HyperJobs that the visitor may see, the newest of a sweep first."""
        rows = self.world.rows
        found = [rows[name] for name in self.asked.runs if name in rows]
        if self.asked.sweep:
            swept = [row for row in rows.values() if row.labels.get(_SWEEP) == self.asked.sweep]
            found += sorted(swept, key=lambda row: row.summary.created, reverse=True)
        visible = [row for row in found if self.scope.includes(row.summary.namespace)]
        return list({row.key: row for row in visible}.values())[:RUNS]


async def curves_of(
    history: History,
    rows: Sequence[Row],
    axis: Axis,
    *,
    colours: Sequence[int] = (0,),
    legend: bool = False,
) -> str:
    """Return the charts of HyperJobs as HTML."""
    runs = [
        Run(row.key, colour, await history.points(row.summary.uid))
        for row, colour in zip(rows, colours, strict=True)
    ]
    sweep = rows[0].labels.get(_SWEEP, "") if rows and not legend else ""
    return str(
        render(
            "parts/curves.html",
            charts=charts(runs, axis),
            runs=runs,
            legend=legend,
            axis=axis,
            address=f"/metrics?{urlencode([('run', row.key) for row in rows])}",
            sweep=f"/metrics?{urlencode({_SWEEP: sweep})}" if sweep else "",
        )
    )
