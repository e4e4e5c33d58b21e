"""A self-contained HTML page of several simulations: tables and SVG plots, no script. Pure."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from hyperjob.simulate.history import History
from hyperjob.simulate.measure import SimulationReport, Spread
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
_RANKS: Final = ("p50", "p95", "p99")
_STYLE: Final = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;
color:#0f172a;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;display:block;overflow-x:auto}
td{white-space:nowrap}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #e2e8f0}
th:first-child,td:first-child{text-align:left}
svg{display:block;margin:.3rem 0 1.2rem;max-width:100%;height:auto}
text{font:11px system-ui,sans-serif;fill:#334155}
.key i{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}
@media (prefers-color-scheme:dark){body{background:#0f172a;color:#e2e8f0}text{fill:#cbd5e1}
th,td{border-color:#334155}}
"""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line of a plot: values at equal intervals of time."""

    name: str
    values: Sequence[float]
    level: float | None = None
    """A value for comparison, drawn as a dashed line in the same colour."""


def page(reports: Sequence[SimulationReport], histories: Sequence[History]) -> str:
    """Return the page; `histories` are the histories of the reports."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'><title>hyperjob simulate</title>",
        f"<style>{_STYLE}</style><h1>hyperjob simulate</h1>",
        "<h2>Side by side</h2>",
        _summary(reports),
        "<h3>Waiting time, share of jobs that have started after</h3>",
        _waits(reports, histories),
    ]
    for report, history in zip(reports, histories, strict=True):
        parts += _policy(report, history)
    return "\n".join([*parts, "</html>\n"])


def _policy(report: SimulationReport, history: History) -> Iterable[str]:
    words, _ = POLICIES[report.policy]
    yield f"<h2>{escape(report.policy)}</h2><p>{escape(words)}</p>"
    waits = {"all": report.wait}
    waits |= {f"{name} accelerators": each for name, each in report.sizes.items()}
    waits |= {f"queue {name}": each.wait for name, each in report.queues.items()}
    yield _spreads("Wait", waits) + _ranges(waits)
    yield _spreads("Completion", {"all": report.completion})
    yield f"<h3>Slowdown</h3>{_slowdown(report.slowdown)}"
    shown = {name: each.share for name, each in report.queues.items()}
    none: Mapping[str, float] = {}
    for title, key, levels in (
        ("Use of each cluster", "clusters", none),
        ("Use by queue; dashed: its share", "queues", shown),
        ("Free accelerators, and free accelerators on nodes in use", "free", none),
    ):
        lines = [
            PlotLine(name, values, levels.get(name)) for name, values in report.series[key].items()
        ]
        yield f"<h3>{title}</h3>{_key(lines)}{_plot(lines, report.end, most=1.0, unit='%')}"
    yield f"<h3>Stops</h3>{_stops(report)}"
    shares = {name: (each.share, each.used) for name, each in report.queues.items()}
    yield "<h3>Shares</h3>" + _table(
        ("queue", "share", "used"),
        [(name, _part(share), _part(used)) for name, (share, used) in shares.items()],
    )
    lines = [PlotLine(name, values) for name, values in report.series["waiting"].items()]
    most = max((max(line.values, default=0.0) for line in lines), default=0.0)
    plot = _plot(lines, report.end, most=most or 1.0, unit="")
    yield f"<h3>Accelerators of waiting jobs</h3>{_key(lines)}{plot}"
    yield f"<h3>The {_ROWS} largest jobs</h3><p>Thin: waits. Thick: runs.</p>{_gantt(history)}"


def _slowdown(found: Spread) -> str:
    values = found.mean, *_percentiles(found), found.max
    row = str(found.count), *(f"{value:.2f}" for value in values)
    return _table(("jobs", "mean", "p50", "p95", "p99", "max"), [row])


def _stops(report: SimulationReport) -> str:
    if not report.stops:
        return "<p>No job was stopped.</p>"
    rows = [(cause, str(number)) for cause, number in report.stops.items()]
    lost = f"{report.lost / 3600:.0f} accelerator-hours of work were repeated."
    return f"{_table(('cause', 'stops'), rows)}<p>{lost}</p>"


def _ranges(spreads: Mapping[str, Spread]) -> str:
    """Return a plot of p50, p95 and p99 of waits, on a logarithmic axis from 10 s to 12 days."""

    def at(seconds: float) -> float:
        return _LEFT + _WIDTH * min(1.0, (math.log10(max(seconds, 10.0)) - 1) / 5)

    drawn, height = [], 18 * len(spreads)
    for row, (name, each) in enumerate(spreads.items()):
        middle, values = 18 * row + 9, _percentiles(each)
        drawn.append(
            f"<text x='{_LEFT - 6}' y='{middle + 4}' text-anchor=end>{escape(name[-20:])}</text>"
            f"<line x1='{at(values[0]):.1f}' x2='{at(values[2]):.1f}' y1='{middle}' y2='{middle}'"
            " stroke='#94a3b8' stroke-width='2'/>"
        )
        drawn += [
            f"<circle cx='{at(value):.1f}' cy='{middle}' r='4' fill='{_COLOURS[place]}'>"
            f"<title>{escape(name)}: {label} {_time(value)}</title></circle>"
            for place, (label, value) in enumerate(zip(_RANKS, values, strict=True))
        ]
    key = _key([PlotLine(label, ()) for label in _RANKS])
    return key + _svg(height, [_frame(height, 0.0, ""), *drawn, _times(height)])


def _times(height: int) -> str:
    """Return the labels of the logarithmic axis of waits."""
    return "".join(
        f"<text x='{_LEFT + _WIDTH * power / 5:.0f}' y='{height + 14}'>{label}</text>"
        for power, label in enumerate(("10 s", "2 min", "17 min", "2.8 h", "28 h", "12 d"))
    )


def _summary(reports: Sequence[SimulationReport]) -> str:
    header = (
        *("policy", "in use", "kept", "wait mean", "p50", "p95", "p99", "slowdown p50", "p95"),
        *("unfair", "free while jobs wait", "free beside use", "stops", "lost", "never started"),
    )
    return _table(
        header,
        [
            (
                each.policy,
                *(_part(each.use), _part(each.goodput)),
                *(_time(value) for value in (each.wait.mean, *_percentiles(each.wait))),
                *(f"{value:.2f}" for value in (each.slowdown.p50, each.slowdown.p95)),
                *(_part(value) for value in (each.unfair, each.idle, each.splinters)),
                *(str(sum(each.stops.values())), f"{each.lost / 3600:.0f} h"),
                str(each.never_started),
            )
            for each in reports
        ],
    )


def _percentiles(found: Spread) -> tuple[float, float, float]:
    return found.p50, found.p95, found.p99


def _spreads(title: str, spreads: Mapping[str, Spread]) -> str:
    return f"<h3>{title}</h3>" + _table(
        ("", "jobs", "mean", "p50", "p95", "p99", "max"),
        [
            (name, str(each.count), *map(_time, (each.mean, *_percentiles(each), each.max)))
            for name, each in spreads.items()
        ],
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _key(lines: Sequence[PlotLine]) -> str:
    found = "".join(
        f"<i style='background:{_COLOURS[place % len(_COLOURS)]}'></i>{escape(line.name)}"
        for place, line in enumerate(lines)
    )
    return f"<p class=key>{found}</p>"


def _plot(lines: Sequence[PlotLine], seconds: float, *, most: float, unit: str) -> str:
    drawn = []
    for place, line in enumerate(lines):
        step = _WIDTH / max(1, len(line.values) - 1)
        points = " ".join(
            f"{_LEFT + number * step:.1f},{_HEIGHT * (1 - min(1.0, value / most)):.1f}"
            for number, value in enumerate(line.values)
        )
        colour = _COLOURS[place % len(_COLOURS)]
        drawn.append(f"<polyline fill=none stroke='{colour}' points='{points}'/>")
        if line.level is not None:
            y = _HEIGHT * (1 - min(1.0, line.level / most))
            drawn.append(
                f"<line x1='{_LEFT}' x2='{_LEFT + _WIDTH}' y1='{y:.1f}' y2='{y:.1f}'"
                f" stroke='{colour}' stroke-dasharray='6 4'/>"
            )
    top = f"{most * 100:.0f}%" if unit == "%" else f"{most:.0f}"
    return _svg(_HEIGHT, [_frame(_HEIGHT, seconds, top), *drawn])


def _waits(reports: Sequence[SimulationReport], histories: Sequence[History]) -> str:
    """Return a plot of the share of started jobs by waiting time, on a logarithmic axis."""
    lines = []
    for report, history in zip(reports, histories, strict=True):
        waits = sorted(life.waited for life in history.lives.values() if life.waited is not None)
        total = max(1, len(history.lives))
        values = [
            bisect_right(waits, 10 ** (1 + 5 * number / 100)) / total for number in range(101)
        ]
        lines.append(PlotLine(report.policy, values))
    drawn = _plot(lines, 0.0, most=1.0, unit="%").replace("</svg>", f"{_times(_HEIGHT)}</svg>")
    return _key(lines) + drawn


def _gantt(history: History) -> str:
    lives = sorted(history.lives.values(), key=lambda life: (-life.job.gpus, life.job.arrival))
    lives = sorted(lives[:_ROWS], key=lambda life: (life.job.arrival, life.job.key))
    scale, height = _WIDTH / (history.end or 1.0), 12 * len(lives)
    names = {name: place for place, name in enumerate(sorted(history.used))}
    drawn = []
    for row, life in enumerate(lives):
        top = 12 * row
        begin, end = life.job.arrival * scale, (life.ended or history.end) * scale
        drawn.append(
            f"<text x='{_LEFT - 4}' y='{top + 9}' text-anchor=end>"
            f"{escape(life.job.key.partition('/')[2][-14:])} {life.job.gpus}</text>"
            f"<rect x='{_LEFT + begin:.1f}' y='{top + 4}' width='{max(0.5, end - begin):.1f}'"
            " height='2' fill='#94a3b8'/>"
        )
        for part in life.segments:
            left, each = part.begin * scale, 9 / max(1, len(part.devices))
            for place, (name, number) in enumerate(sorted(part.devices.items())):
                colour = _COLOURS[names[name] % len(_COLOURS)]
                drawn.append(
                    f"<rect x='{_LEFT + left:.1f}' y='{top + 1 + place * each:.1f}'"
                    f" width='{max(0.5, part.end * scale - left):.1f}' height='{each:.1f}'"
                    f" fill='{colour}'><title>{escape(name)}: {number}</title></rect>"
                )
    key = _key([PlotLine(name, ()) for name in names])
    return key + _svg(height, [*drawn, _frame(height, history.end, "")])


def _frame(height: int, seconds: float, top: str) -> str:
    quarter = seconds / 86400 / 4
    marks = [
        f"<text x='{_LEFT + _WIDTH * part / 4:.0f}' y='{height + 14}'>{quarter * part:.1f} d</text>"
        for part in range(5)
        if seconds
    ]
    box = f"<rect x='{_LEFT}' y='0' width='{_WIDTH}' height='{height}' fill=none stroke='#94a3b8'/>"
    return f"{box}<text x='{_LEFT - 6}' y='10' text-anchor=end>{top}</text>{''.join(marks)}"


def _svg(height: int, parts: Iterable[str]) -> str:
    size = f"viewBox='0 0 {_LEFT + _WIDTH + 40} {height + 20}' width='{_LEFT + _WIDTH + 40}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} role=img>{''.join(parts)}</svg>"


def _part(part: float) -> str:
    return f"{100 * part:.1f}%"


def _time(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
