"""Curves of metrics over steps or time, of one HyperJob or of several over each other. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hyperjob.ui.charts.axis import ROUND_SECONDS, Tick
from hyperjob.ui.history.points import ProgressPoint
from hyperjob_core.text import human_duration

WIDTH: Final = 600
HEIGHT: Final = 100
_METRICS: Final = 24
_TICKS: Final = 6

Axis = Literal["step", "time"]


@dataclass(frozen=True, slots=True)
class Run:
    """The progress of a HyperJob, and the number of its colour."""

    name: str
    colour: int
    points: Sequence[ProgressPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The line of a HyperJob, `path` in a box of WIDTH by HEIGHT; `last` is its latest value."""

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


def charts(runs: Sequence[Run], axis: Axis) -> list[CurveChart]:
    """Return a chart for each metric of the runs, in alphabetical order."""
    names = sorted({name for run in runs for point in run.points for name in point.metrics})
    drawn = (_chart(name, runs, axis) for name in names[:_METRICS])
    return [chart for chart in drawn if chart is not None]


def _chart(metric: str, runs: Sequence[Run], axis: Axis) -> CurveChart | None:
    """Return the chart of a metric; None where it has no finite value."""
    values = [(run, list(_places(run, metric, axis))) for run in runs]
    known = [each for _, found in values for each in found]
    if not known:
        return None
    left, right = min(x for x, _ in known), max(x for x, _ in known)
    low, high = min(y for _, y in known), max(y for _, y in known)
    across = _scale(left, right, WIDTH)
    up = _scale(low, high, HEIGHT)
    return CurveChart(
        metric=metric,
        top=number(high),
        bottom=number(low),
        ticks=_ticks(left, right, axis),
        curves=[
            Curve(
                name=run.name,
                colour=run.colour,
                path=_path((across(x), HEIGHT - up(y)) for x, y in found),
                last=number(found[-1][1]),
            )
            for run, found in values
            if found
        ],
    )


def _places(run: Run, metric: str, axis: Axis) -> Iterable[tuple[float, float]]:
    """Yield place and value of each point with a finite value of a metric."""
    begin = run.points[0].at if run.points else None
    for point in run.points:
        value = point.metrics.get(metric)
        if value is None or begin is None or not math.isfinite(value):
            continue
        yield (point.step if axis == "step" else (point.at - begin).total_seconds()), value


def _scale(low: float, high: float, length: int) -> Callable[[float], float]:
    """Return the function from a value to its place; equal values are in the middle."""
    half = high / 2 - low / 2  # the whole difference of two floats may be infinite
    if half <= 0:
        return lambda _: length / 2
    return lambda value: length * min(1.0, (value / 2 - low / 2) / half)


def _path(places: Iterable[tuple[float, float]]) -> str:
    """Return a line; a program that resumed from an earlier step draws back to it."""
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


def number(value: float) -> str:
    """Return a value in few characters."""
    return f"{value:.5g}"
