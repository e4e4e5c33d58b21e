"""The metrics of a HyperJob as curves, from the progress lines in the logs of its pods.

The page reads the logs with the visitor's own rights at each request, and keeps nothing of them.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal

from aiohttp import web

from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.reading import ChosenLogs
from hyperjob.client.logs.steps import Thinned
from hyperjob.client.summary import Summary, read
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import human_duration
from hyperjob_engine.model.training import OUT_OF_ORDER, parse
from hyperjob_page.pages.logs import errors_told, ranks_of
from hyperjob_page.render import mark, render
from hyperjob_page.timeline import ROUND_SECONDS, Tick

WIDTH: Final = 600
HEIGHT: Final = 100
_METRICS: Final = 24
_TICKS: Final = 6

_COLUMNS: Final = 60

Axis = Literal["step", "time"]
Scale = Literal["linear", "log"]

Places = list[tuple[float, float]]
"""Places on the axis with their values."""


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """The step of a program and its metrics; `at` is None where the log has no times."""

    step: int
    at: datetime | None
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """The progress of one rank in one attempt."""

    name: str
    points: Sequence[ProgressPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The path of a line in a box of WIDTH by HEIGHT; `last` is its latest value."""

    name: str
    colour: int
    path: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveChart:
    """The curves of a metric; `top` and `bottom` are the values at the edges of the box.

    `columns` has what to show at equal parts of the box, `marks` where an attempt or a run of the
    program begins after others.
    """

    metric: str
    top: str
    bottom: str
    ticks: Sequence[Tick]
    curves: Sequence[Curve]
    columns: Sequence[Tick]
    marks: Sequence[Tick]


def charts(lines: Sequence[ProgressLine], axis: Axis, scale: Scale = "linear") -> list[CurveChart]:
    """Return a chart for each metric of the lines, in alphabetical order.

    Time counts from the first point of all lines. A logarithmic scale leaves out what is not above
    zero.
    """
    points = [point for line in lines for point in line.points]
    begin = min((point.at for point in points if point.at is not None), default=None)

    def place(point: ProgressPoint) -> float | None:
        if axis == "step":
            return point.step
        if begin is None or point.at is None:
            return None
        return (point.at - begin).total_seconds()

    names = sorted({name for point in points for name in point.metrics})
    drawn = (_chart(name, lines, axis, place, scale) for name in names[:_METRICS])
    return [chart for chart in drawn if chart is not None]


def _chart(
    metric: str,
    lines: Sequence[ProgressLine],
    axis: Axis,
    place: Callable[[ProgressPoint], float | None],
    scale: Scale,
) -> CurveChart | None:
    """Return the chart of a metric; None where it has no finite value."""
    drawn = [
        (number, line, _pieces(line, metric, place, least=0.0 if scale == "log" else -math.inf))
        for number, line in enumerate(lines)
    ]
    height: Callable[[float], float] = math.log10 if scale == "log" else float
    known = [each for _, _, pieces in drawn for piece in pieces for each in piece]
    if not known:
        return None
    left, right = min(x for x, _ in known), max(x for x, _ in known)
    low, high = min(y for _, y in known), max(y for _, y in known)
    across = _scale(left, right, WIDTH)
    up = _scale(height(low), height(high), HEIGHT)
    begins = [(x[0][0], line.name) for _, line, pieces in drawn for x in pieces]
    return CurveChart(
        metric=metric,
        top=number_text(high),
        bottom=number_text(low),
        ticks=_ticks(left, right, axis),
        curves=[
            Curve(
                name=line.name,
                colour=number,
                path="".join(
                    _path((across(x), HEIGHT - up(height(y))) for x, y in piece) for piece in pieces
                ),
                last=number_text(pieces[-1][-1][1]),
            )
            for number, line, pieces in drawn
            if pieces
        ],
        columns=_columns([(line.name, pieces) for _, line, pieces in drawn], left, right, axis),
        marks=[
            Tick(at=across(x), text=f"{name} begins at {_tick_text(x, axis)}")
            for x, name in begins
            if x > left
        ],
    )


def _columns(
    drawn: Sequence[tuple[str, list[Places]]], left: float, right: float, axis: Axis
) -> list[Tick]:
    """Return the values of all lines near the middle of each of _COLUMNS equal parts."""
    found = []
    for number in range(_COLUMNS):
        middle = left + (right - left) * (number + 0.5) / _COLUMNS
        texts = [_tick_text(middle, axis)]
        for name, pieces in drawn:
            near = min(
                (each for piece in pieces for each in piece),
                key=lambda each: abs(each[0] - middle),
                default=None,
            )
            if near:
                texts.append(f"{name}: {number_text(near[1])}")
        found.append(Tick(at=number * WIDTH / _COLUMNS, text="\n".join(texts)))
    return found


def _pieces(
    line: ProgressLine,
    metric: str,
    place: Callable[[ProgressPoint], float | None],
    *,
    least: float,
) -> list[Places]:
    """Return the finite values of a metric above `least` in pieces.

    A program that begins again at an earlier step begins a new piece: no line runs backwards.
    """
    pieces: list[Places] = []
    last = math.inf
    for point in line.points:
        value, where = point.metrics.get(metric), place(point)
        if value is None or where is None or not least < value < math.inf:
            continue
        if point.step < last:
            pieces.append([])
        pieces[-1].append((where, value))
        last = point.step
    return pieces


def _scale(low: float, high: float, length: int) -> Callable[[float], float]:
    """Return the function from a value to its place; equal values are in the middle."""
    half = high / 2 - low / 2  # the whole difference of two floats may be infinite
    if half <= 0:
        return lambda _: length / 2
    return lambda value: length * min(1.0, (value / 2 - low / 2) / half)


def _path(places: Iterable[tuple[float, float]]) -> str:
    """Return a line through places."""
    found = [f"{x:.1f} {y:.1f}" for x, y in places]
    if len(found) == 1:
        found *= 2  # a line of no length shows as a dot
    return "M" + "L".join(found)


def _ticks(left: float, right: float, axis: Axis) -> list[Tick]:
    """Return round places of the axis; the single place where it has no length."""
    if right <= left:
        return [Tick(at=50.0, text=_tick_text(left, axis))]
    whole = right - left
    if axis == "time":
        step = next((each for each in ROUND_SECONDS if whole / each <= _TICKS), whole)
    else:
        rough = max(whole / _TICKS, 1.0)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
    first = math.ceil(left / step)
    return [
        Tick(at=round(100 * (n * step - left) / whole, 2), text=_tick_text(n * step, axis))
        for n in range(first, math.floor(right / step) + 1)
    ]


def _tick_text(value: float, axis: Axis) -> str:
    return human_duration(value) if axis == "time" else f"{value:.0f}"


def number_text(value: float) -> str:
    """Return a value in few characters."""
    return f"{value:.5g}"


_LOGS: Final = 8
_TAIL: Final = 5_000
_BYTES: Final = 32 * 2**20
_SECONDS: Final = 10.0
_POINTS: Final = 400
_LINES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsChoice:
    """The ranks whose logs to read, the first ones if there are none, the axis and the scale."""

    ranks: tuple[int, ...] = ()
    axis: Axis = "step"
    scale: Scale = "linear"

    @classmethod
    def of(cls, request: web.Request) -> "MetricsChoice":
        """Parse the parameters of a request; invalid values count as absent."""
        return cls(
            ranks=tuple(ranks_of(request.query.get("rank", ""))),
            axis="time" if request.query.get("axis") == "time" else "step",
            scale="log" if request.query.get("scale") == "log" else "linear",
        )


async def curves(kube: Kube, namespace: str, name: str, choice: MetricsChoice) -> str:
    """Return the curves of a HyperJob as HTML; raises KubeError where it cannot be read."""
    summary = read(await kube.get(HYPERJOBS, name, namespace=namespace))
    lines, remarks = await progress_of(kube, summary, choice.ranks)
    text = str(
        render(
            "parts/curves.html",
            charts=charts(lines, choice.axis, choice.scale),
            lines=lines,
            axis=choice.axis,
            remarks=remarks,
        )
    )
    return str(render("parts/metrics.html", html=text, mark=mark(text)))


async def progress_of(
    kube: Kube, summary: Summary, ranks: Sequence[int]
) -> tuple[list[ProgressLine], list[str]]:
    """Return the progress of each rank and attempt that has a log, and remarks about the others.

    At most 8 logs are read, each from its last 5,000 lines on, for 10 s and 32 MiB together.
    """
    lines, remarks = _Lines(), list[str]()
    with errors_told(remarks.append):
        await _read_present(kube, summary, ranks, lines, remarks)
    return lines.found, remarks


class _Lines:
    """Lines by name, each with a bounded number of points; points come in the order of a log."""

    def __init__(self) -> None:
        self._kept: dict[str, Thinned[ProgressPoint]] = {}
        self._last: dict[str, ProgressPoint] = {}

    def add(self, who: str, attempt: int, line: LogLine) -> None:
        """Add a line of a log; without a progress line in it nothing."""
        found = parse(line)
        if found is None:
            return
        name = f"{who}, attempt {attempt}"
        metrics = {metric: float(text) for metric, text in found.metrics.items()}
        point = ProgressPoint(found.step, found.time, metrics)
        before = self._last.get(name)
        # Several processes of a pod print into one log: their lines may change places.
        if before is not None and before.at and point.at and point.step < before.step:  # noqa: SIM102
            if point.at - before.at < OUT_OF_ORDER:
                return
        self._last[name] = point
        self._kept.setdefault(name, Thinned(_POINTS)).add(point)

    @property
    def found(self) -> list[ProgressLine]:
        """Return the first lines, each rank and attempt once."""
        return [ProgressLine(name, each.kept) for name, each in islice(self._kept.items(), _LINES)]


async def _read_present(
    kube: Kube, summary: Summary, ranks: Sequence[int], lines: _Lines, remarks: list[str]
) -> None:
    """Read the logs of the present pods."""
    attempts = {job.name: job.number for job in summary.jobs}
    left = _BYTES
    try:
        async with asyncio.timeout(_SECONDS):
            wanted = Wanted(ranks=frozenset(ranks) or None)
            logs = await ChosenLogs.of(kube, summary, wanted, tail=_TAIL, say=remarks.append)
            if len(logs.chosen) > _LOGS:
                remarks.append(f"{_LOGS} of {len(logs.chosen)} logs are read: choose ranks")
                logs.chosen = logs.chosen[:_LOGS]
            async with aclosing(logs.lines()) as found:
                async for source, raw in found:
                    left -= len(raw)
                    if left < 0:
                        remarks.append(f"the rest after {_BYTES / 2**20:g} MiB is not read")
                        break
                    who = source.pod if source.rank is None else f"rank {source.rank}"
                    lines.add(who, attempts.get(source.job, 1), LogLine.of(raw))
    except TimeoutError:
        remarks.append(f"the rest after {_SECONDS:g} s is not read")
