"""The curves of metrics: scales, paths, ticks, and values that no line can show."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob.ui.charts.curves import HEIGHT, WIDTH, Run, _scale, _ticks, charts, number
from hyperjob.ui.history.points import ProgressPoint

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def point(step: int, seconds: float | None = None, **metrics: float) -> ProgressPoint:
    at = T0 + timedelta(seconds=step if seconds is None else seconds)
    return ProgressPoint(at=at, step=step, metrics=metrics)


def run(*points: ProgressPoint, name: str = "a", colour: int = 0) -> Run:
    return Run(name, colour, points)


def test_each_metric_has_a_chart_with_a_curve_for_each_run() -> None:
    first = run(point(0, loss=4, lr=1), point(10, loss=0), point(20, loss=2))
    second = run(point(20, 5, loss=1), name="b", colour=3)
    loss, lr = charts([first, second, run(name="none")], "step")
    assert (loss.metric, loss.top, loss.bottom) == ("loss", "4", "0")
    assert [(curve.name, curve.colour, curve.last) for curve in loss.curves] == [
        ("a", 0, "2"),
        ("b", 3, "1"),
    ]
    half, quarter = HEIGHT / 2, HEIGHT * 3 / 4
    assert loss.curves[0].path == (f"M0.0 0.0L{WIDTH / 2:.1f} {HEIGHT:.1f}L{WIDTH:.1f} {half:.1f}")
    dot = f"{WIDTH:.1f} {quarter:.1f}"
    assert loss.curves[1].path == f"M{dot}L{dot}", "a single point is a dot"
    assert (lr.metric, [curve.name for curve in lr.curves]) == ("lr", ["a"])
    assert charts([], "step") == []


def test_time_counts_from_the_first_point_of_each_run() -> None:
    late = run(point(0, 100, x=1), point(1, 110, x=2))
    (chart,) = charts([run(point(0, 0, x=1), point(1, 20, x=2)), late], "time")
    assert chart.curves[1].path.startswith("M0.0 ")
    assert chart.curves[1].path.rpartition("L")[2].split()[0] == f"{WIDTH / 2:.1f}"


def test_values_that_are_no_numbers_are_left_out() -> None:
    points = [point(0, x=math.nan), point(1, x=math.inf), point(2, x=5), point(3)]
    (chart,) = charts([run(*points)], "step")
    assert (chart.top, chart.bottom, chart.curves[0].last) == ("5", "5", "5")
    assert charts([run(point(0, x=math.nan))], "step") == []


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [
        (0, 10, {0: 0, 5: 50, 10: 100}),
        (-5, 5, {-5: 0, 0: 50, 5: 100}),
        (7, 7, {7: 50}),
        (-1.7e308, 1.7e308, {-1.7e308: 0, 0: 50, 1.7e308: 100}),
    ],
)
def test_a_scale_takes_any_two_numbers(low: float, high: float, places: Any) -> None:
    scale = _scale(low, high, 100)
    assert {value: scale(value) for value in places} == pytest.approx(places)


@pytest.mark.parametrize(
    ("left", "right", "axis", "ticks"),
    [
        (3, 3, "step", [(50.0, "3")]),
        (0, 4, "step", [(0, "0"), (25, "1"), (50, "2"), (75, "3"), (100, "4")]),
        (0, 100, "step", [(0, "0"), (20, "20"), (40, "40"), (60, "60"), (80, "80"), (100, "100")]),
        (5, 25, "step", [(0, "5"), (25, "10"), (50, "15"), (75, "20"), (100, "25")]),
        (1, 2, "step", [(0, "1"), (100, "2")]),
        (0, 60, "time", [(0, "0s"), (16.67, "10s"), (33.33, "20s"), (50, "30s"), (66.67, "40s"),
                         (83.33, "50s"), (100, "60s")]),
    ],
)  # fmt: skip
def test_ticks_are_few_and_round(left: float, right: float, axis: Any, ticks: Any) -> None:
    assert [(each.at, each.text) for each in _ticks(left, right, axis)] == ticks


def test_a_value_has_five_digits() -> None:
    assert [number(value) for value in (2.0, 0.123456, 1234567.0, 1e-9)] == [
        *("2", "0.12346", "1.2346e+06", "1e-09")
    ]
