"""A self-contained HTML page of several simulations: tables and SVG plots, no script."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from hyperjob.html import Attributes, Shape, drawing, environment
from hyperjob.simulate.history import History
from hyperjob.simulate.measure import SimulationReport, Spread, percent
from hyperjob.simulate.policies import POLICIES

_WIDTH: Final = 860
_HEIGHT: Final = 150
_LEFT: Final = 120
_ROWS: Final = 60
"""Number of jobs in the Gantt chart, the largest first."""
_COLOURS: Final = (
    *("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#65a30d"),
    *("#475569", "#ca8a04"),
)
_GREY: Final = "#94a3b8"
_RANKS: Final = ("p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line of a plot: values at equal intervals of time."""

    name: str
    values: Sequence[float]
    level: float | None = None
    """A value for comparison, drawn as a dashed line in the same colour."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with the colours of its lines by name, for the key above it."""

    title: str
    key: Mapping[str, str]
    drawing: Markup


class Table(NamedTuple):
    """The header and the rows of a table."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySection:
    """What the page shows of one policy."""

    name: str
    words: str
    wait: Table
    ranges: Plot
    completion: Table
    slowdown: Table
    plots: Sequence[Plot]
    stops: Table
    lost: str
    shares: Table
    waiting: Plot
    gantt: Plot


def page(reports: Sequence[SimulationReport], histories: Sequence[History]) -> str:
    """Return the page; `histories` are the histories of the reports."""
    template = environment("hyperjob.simulate").get_template("simulation.html")
    return template.render(
        summary=_summary(reports),
        waits=_waits(reports, histories),
        sections=[_section(*each) for each in zip(reports, histories, strict=True)],
    )


def _section(report: SimulationReport, history: History) -> PolicySection:
    """Return the tables and plots of one policy."""
    waits = {"all": report.wait}
    waits |= {f"{name} accelerators": each for name, each in report.sizes.items()}
    waits |= {f"queue {name}": each.wait for name, each in report.queues.items()}
    shown = {name: each.share for name, each in report.queues.items()}
    none: Mapping[str, float] = {}
    plots = []
    for title, key, levels in (
        ("Use of each cluster", "clusters", none),
        ("Use by queue; dashed: its share", "queues", shown),
        ("Free accelerators, and free accelerators on nodes in use", "free", none),
    ):
        lines = [
            PlotLine(name, values, levels.get(name)) for name, values in report.series[key].items()
        ]
        plots.append(_plot(title, lines, report.end, most=1.0, unit="%"))
    lines = [PlotLine(name, values) for name, values in report.series["waiting"].items()]
    most = max((max(line.values, default=0.0) for line in lines), default=0.0)
    return PolicySection(
        name=report.policy,
        words=POLICIES[report.policy][0],
        wait=_spreads(waits),
        ranges=_ranges(waits),
        completion=_spreads({"all": report.completion}),
        slowdown=_slowdown(report.slowdown),
        plots=plots,
        stops=Table(
            ("cause", "stops"),
            [(cause, str(number)) for cause, number in report.stops.items()],
        ),
        lost=f"{report.lost / 3600:.0f}",
        shares=Table(
            ("queue", "share", "used"),
            [
                (name, percent(each.share), percent(each.used))
                for name, each in report.queues.items()
            ],
        ),
        waiting=_plot("Accelerators of waiting jobs", lines, report.end, most=most or 1.0, unit=""),
        gantt=_gantt(history),
    )


def _slowdown(found: Spread) -> Table:
    values = found.mean, *_percentiles(found), found.max
    row = str(found.count), *(f"{value:.2f}" for value in values)
    return Table(("jobs", "mean", "p50", "p95", "p99", "max"), [row])


def _ranges(spreads: Mapping[str, Spread]) -> Plot:
    """Return a plot of p50, p95 and p99 of waits, on a logarithmic axis from 10 s to 12 days."""

    def at(seconds: float) -> str:
        return f"{_LEFT + _WIDTH * min(1.0, (math.log10(max(seconds, 10.0)) - 1) / 5):.1f}"

    drawn, height = [], 18 * len(spreads)
    for row, (name, each) in enumerate(spreads.items()):
        middle, values = 18 * row + 9, _percentiles(each)
        drawn += [
            _row_label(middle + 4, name[-20:]),
            _rule(at(values[0]), at(values[2]), middle, {"stroke": _GREY, "stroke-width": 2}),
        ]
        drawn += [
            Shape(
                "circle",
                {"cx": at(value), "cy": middle, "r": 4, "fill": _COLOURS[place]},
                title=f"{name}: {label} {_wait_text(value)}",
            )
            for place, (label, value) in enumerate(zip(_RANKS, values, strict=True))
        ]
    return Plot(
        "", _key(_RANKS), _svg(height, [*_frame(height, 0.0, ""), *drawn, *_wait_axis(height)])
    )


def _wait_axis(height: int) -> list[Shape]:
    """Return the labels of the logarithmic axis of waits."""
    return [
        Shape("text", {"x": f"{_LEFT + _WIDTH * power / 5:.0f}", "y": height + 14}, label)
        for power, label in enumerate(("10 s", "2 min", "17 min", "2.8 h", "28 h", "12 d"))
    ]


def _summary(reports: Sequence[SimulationReport]) -> Table:
    """Return the table that compares the policies."""
    header = (
        *("policy", "in use", "kept", "wait mean", "p50", "p95", "p99", "slowdown p50", "p95"),
        *("unfair", "free while jobs wait", "free beside use", "stops", "lost", "never started"),
    )
    return Table(
        header,
        [
            (
                each.policy,
                *(percent(each.use), percent(each.goodput)),
                *(_wait_text(value) for value in (each.wait.mean, *_percentiles(each.wait))),
                *(f"{value:.2f}" for value in (each.slowdown.p50, each.slowdown.p95)),
                *(percent(value) for value in (each.unfair, each.idle, each.splinters)),
                *(str(sum(each.stops.values())), f"{each.lost / 3600:.0f} h"),
                str(each.never_started),
            )
            for each in reports
        ],
    )


def _percentiles(found: Spread) -> tuple[float, float, float]:
    return found.p50, found.p95, found.p99


def _spreads(spreads: Mapping[str, Spread]) -> Table:
    return Table(
        ("", "jobs", "mean", "p50", "p95", "p99", "max"),
        [
            (name, str(each.count), *map(_wait_text, (each.mean, *_percentiles(each), each.max)))
            for name, each in spreads.items()
        ],
    )


def _key(names: Iterable[str]) -> Mapping[str, str]:
    return {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}


def _plot(
    title: str,
    lines: Sequence[PlotLine],
    seconds: float,
    *,
    most: float,
    unit: str,
    labels: Sequence[Shape] = (),
) -> Plot:
    """Return a plot of lines up to `most`; `seconds` is the length of the axis, 0 without days.

    `unit` % shows the top as a percentage. `labels` are drawn below an axis without days.
    """
    key = _key(line.name for line in lines)
    drawn = []
    for line in lines:
        step = _WIDTH / max(1, len(line.values) - 1)
        points = " ".join(
            f"{_LEFT + number * step:.1f},{_HEIGHT * (1 - min(1.0, value / most)):.1f}"
            for number, value in enumerate(line.values)
        )
        stroke = {"stroke": key[line.name]}
        drawn.append(Shape("polyline", {"fill": "none", **stroke, "points": points}))
        if line.level is not None:
            y = f"{_HEIGHT * (1 - min(1.0, line.level / most)):.1f}"
            dashed = stroke | {"stroke-dasharray": "6 4"}
            drawn.append(_rule(_LEFT, _LEFT + _WIDTH, y, dashed))
    top = f"{most * 100:.0f}%" if unit == "%" else f"{most:.0f}"
    return Plot(title, key, _svg(_HEIGHT, [*_frame(_HEIGHT, seconds, top), *drawn, *labels]))


def _waits(reports: Sequence[SimulationReport], histories: Sequence[History]) -> Plot:
    """Return a plot of the share of started jobs by waiting time, on a logarithmic axis."""
    lines = []
    for report, history in zip(reports, histories, strict=True):
        waits = sorted(life.waited for life in history.lives.values() if life.waited is not None)
        total = max(1, len(history.lives))
        values = [
            bisect_right(waits, 10 ** (1 + 5 * number / 100)) / total for number in range(101)
        ]
        lines.append(PlotLine(report.policy, values))
    title = "Waiting time, share of jobs that have started after"
    return _plot(title, lines, 0.0, most=1.0, unit="%", labels=_wait_axis(_HEIGHT))


def _gantt(history: History) -> Plot:
    """Return the runs of the largest jobs by cluster, with a line from arrival to end."""
    lives = sorted(history.lives.values(), key=lambda life: (-life.job.gpus, life.job.arrival))
    lives = sorted(lives[:_ROWS], key=lambda life: (life.job.arrival, life.job.key))
    scale, height = _WIDTH / (history.end or 1.0), 12 * len(lives)
    key = _key(sorted(history.used))
    drawn = []
    for row, life in enumerate(lives):
        top = 12 * row
        begin, end = life.job.arrival * scale, (life.ended or history.end) * scale
        name = life.job.key.partition("/")[2][-14:]
        drawn += [
            _row_label(top + 9, f"{name} {life.job.gpus}"),
            _block(begin, end, top + 4, 2, _GREY),
        ]
        for part in life.segments:
            begin, end, each = part.begin * scale, part.end * scale, 9 / max(1, len(part.devices))
            drawn += [
                _block(
                    begin, end, top + 1 + place * each, each, key[cluster], f"{cluster}: {number}"
                )
                for place, (cluster, number) in enumerate(sorted(part.devices.items()))
            ]
    title = f"The {_ROWS} largest jobs"
    return Plot(title, key, _svg(height, [*drawn, *_frame(height, history.end, "")]))


def _block(
    begin: float, end: float, top: float, height: float, fill: str, title: str = ""
) -> Shape:
    place = {
        "x": f"{_LEFT + begin:.1f}",
        "y": f"{top:.1f}",
        "width": f"{max(0.5, end - begin):.1f}",
    }
    return Shape("rect", {**place, "height": f"{height:.1f}", "fill": fill}, title=title)


def _rule(begin: str | int, end: str | int, y: str | int, style: Attributes) -> Shape:
    return Shape("line", {"x1": begin, "x2": end, "y1": y, "y2": y, **style})


def _row_label(y: int, text: str) -> Shape:
    return Shape("text", {"x": _LEFT - 6, "y": y, "text-anchor": "end"}, text)


def _frame(height: int, seconds: float, top: str) -> list[Shape]:
    """Return the box of a plot with the label of its top, and days below it if it has a length."""
    quarter = seconds / 86400 / 4
    place: Attributes = {"x": _LEFT, "y": 0, "width": _WIDTH, "height": height}
    box = {**place, "fill": "none", "stroke": _GREY}
    marks = [
        Shape(
            "text",
            {"x": f"{_LEFT + _WIDTH * part / 4:.0f}", "y": height + 14},
            f"{quarter * part:.1f} d",
        )
        for part in range(5)
        if seconds
    ]
    return [Shape("rect", box), _row_label(10, top), *marks]


def _svg(height: int, shapes: Iterable[Shape]) -> Markup:
    width = _LEFT + _WIDTH + 40
    return drawing(shapes, viewBox=f"0 0 {width} {height + 20}", width=width, role="img")


def _wait_text(seconds: float) -> str:
    """Return a wait in minutes or hours."""
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
