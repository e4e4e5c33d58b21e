"""The metrics of a HyperJob as curves, from the progress lines in the logs of its pods.

The page reads the logs with the visitor's own rights at each request, and keeps nothing of them.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from aiohttp import web

from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.reading import ChosenLogs, Thinned
from hyperjob.client.summary import Summary, read
from hyperjob_core.api.lines import LogLine, ProgressLine, parse
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import human_duration
from hyperjob_engine.model.training import OUT_OF_ORDER
from hyperjob_page.pages.logs import errors_told, ranks_of
from hyperjob_page.render import mark, render
from hyperjob_page.timeline import ROUND_SECONDS, Tick

WIDTH: Final = 600
HEIGHT: Final = 100
_METRICS: Final = 24
_TICKS: Final = 6


Axis = Literal["step", "time"]

Places = list[tuple[float, float]]
"""Places on the axis with their values."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress lines of one rank in one attempt."""

    name: str
    points: Sequence[ProgressLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The path of a line in a box of WIDTH by HEIGHT; `last` is its latest value."""

    name: str
    colour: int
    path: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveChart:
    """The curves of a metric; `top` and `bottom` are the values at the edges of the box."""

    metric: str
    top: str
    bottom: str
    ticks: Sequence[Tick]
    curves: Sequence[Curve]


def charts(lines: Sequence[Progress], axis: Axis) -> list[CurveChart]:
    """Return a chart for each metric of the lines, in alphabetical order.

    Time counts from the first point of all lines.
    """
    points = [point for line in lines for point in line.points]
    begin = min((point.time for point in points), default=None)

    def place(point: ProgressLine) -> float:
        if axis == "step" or begin is None:
            return point.step
        return (point.time - begin).total_seconds()

    names = sorted({name for point in points for name in point.metrics})
    drawn = (_chart(name, lines, axis, place) for name in names[:_METRICS])
    return [chart for chart in drawn if chart is not None]


def _chart(
    metric: str,
    lines: Sequence[Progress],
    axis: Axis,
    place: Callable[[ProgressLine], float],
) -> CurveChart | None:
    """Return the chart of a metric; None where it has no finite value."""
    drawn = [(number, line, _pieces(line, metric, place)) for number, line in enumerate(lines)]
    known = [each for _, _, pieces in drawn for piece in pieces for each in piece]
    if not known:
        return None
    left, right = min(x for x, _ in known), max(x for x, _ in known)
    low, high = min(y for _, y in known), max(y for _, y in known)
    across, up = _scale(left, right, WIDTH), _scale(low, high, HEIGHT)
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
                    _path((across(x), HEIGHT - up(y)) for x, y in piece) for piece in pieces
                ),
                last=number_text(pieces[-1][-1][1]),
            )
            for number, line, pieces in drawn
            if pieces
        ],
    )


def _pieces(line: Progress, metric: str, place: Callable[[ProgressLine], float]) -> list[Places]:
    """Return the finite values of a metric in pieces.

    A program that begins again at an earlier step begins a new piece: no line runs backwards.
    """
    pieces: list[Places] = []
    last = math.inf
    for point in line.points:
        value = float(point.metrics.get(metric, "nan"))
        if not math.isfinite(value):
            continue
        if point.step < last:
            pieces.append([])
        pieces[-1].append((place(point), value))
        last = point.step
    return pieces


def _scale(low: float, high: float, length: int) -> Callable[[float], float]:
    """Return the function from a value to its place; equal values are in the middle."""
    half = high / 2 - low / 2  # the whole difference of two floats may be infinite
    if half <= 0:
        return lambda _: length / 2
    return lambda value: length * min(1.0, (value / 2 - low / 2) / half)


def _path(places: Iterable[tuple[float, float]]) -> str:
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
    """The ranks whose logs to read, the first ones if there are none, and the axis."""

    ranks: tuple[int, ...] = ()
    axis: Axis = "step"

    @classmethod
    def of(cls, request: web.Request) -> "MetricsChoice":
        """Parse the parameters of a request; invalid values count as absent."""
        return cls(
            ranks=tuple(ranks_of(request.query.get("rank", ""))),
            axis="time" if request.query.get("axis") == "time" else "step",
        )


async def curves(kube: Kube, namespace: str, name: str, choice: MetricsChoice) -> str:
    """Return the curves of a HyperJob as HTML; raises KubeError where it cannot be read."""
    summary = read(await kube.get(HYPERJOBS, name, namespace=namespace))
    lines, remarks = await progress_of(kube, summary, choice.ranks)
    text = render(
        "parts/curves.html",
        charts=charts(lines, choice.axis),
        lines=lines,
        axis=choice.axis,
        remarks=remarks,
    )
    return render("parts/metrics.html", html=text, mark=mark(text))


async def progress_of(
    kube: Kube, summary: Summary, ranks: Sequence[int]
) -> tuple[list[Progress], list[str]]:
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
        self._kept: dict[str, Thinned[ProgressLine]] = {}
        self._last: dict[str, ProgressLine] = {}

    def add(self, who: str, attempt: int, line: LogLine) -> None:
        """Add a line of a log; without a progress line in it nothing."""
        found = parse(line)
        if found is None:
            return
        name = f"{who}, attempt {attempt}"
        before = self._last.get(name)
        # Several processes of a pod print into one log: their lines may change places.
        if (
            before is not None
            and found.step < before.step
            and found.time - before.time < OUT_OF_ORDER
        ):
            return
        self._last[name] = found
        self._kept.setdefault(name, Thinned(_POINTS)).add(found)

    @property
    def found(self) -> list[Progress]:
        """Return the first lines, each rank and attempt once."""
        return [Progress(name, each.kept) for name, each in islice(self._kept.items(), _LINES)]


async def _read_present(
    kube: Kube, summary: Summary, ranks: Sequence[int], lines: _Lines, remarks: list[str]
) -> None:
    attempts = {job.name: job.number for job in summary.jobs}
    left = _BYTES
    try:
        async with asyncio.timeout(_SECONDS):
            wanted = Wanted(ranks=frozenset(ranks) or None, tail=_TAIL)
            logs = await ChosenLogs.of(kube, summary, wanted, say=remarks.append)
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
