"""The curves of metrics: scales, pieces, ticks, and values that no line can show."""

import math
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.lines import ProgressLine
from hyperjob_page.pages.metrics import (
    HEIGHT,
    WIDTH,
    Axis,
    CurveChart,
    Progress,
    charts,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def point(step: int, seconds: float | None = None, **metrics: float) -> ProgressLine:
    at = T0 + timedelta(seconds=step if seconds is None else seconds)
    texts = {name: str(value) for name, value in metrics.items()}
    return ProgressLine(step=step, time=at, metrics=texts)


def line(*points: ProgressLine, name: str = "rank 0, attempt 1") -> Progress:
    return Progress(name, points)


def places(chart: CurveChart, number: int = 0) -> list[list[tuple[float, float]]]:
    """Return the pieces of a curve as places in the box."""
    return [
        [(float(x), float(y)) for x, y in (each.split(" ") for each in piece.split("L"))]
        for piece in chart.curves[number].path.split("M")[1:]
    ]


def test_each_metric_has_a_chart_with_a_curve_for_each_line() -> None:
    first = line(point(0, loss=4, lr=1), point(10, loss=0), point(20, loss=2))
    second = line(point(20, 5, loss=1), name="rank 1, attempt 1")
    loss, lr = charts([first, line(name="none"), second], "step")
    assert (loss.metric, loss.top, loss.bottom) == ("loss", "4", "0")
    assert [(curve.name, curve.colour, curve.last) for curve in loss.curves] == [
        ("rank 0, attempt 1", 0, "2"),
        ("rank 1, attempt 1", 2, "1"),
    ]
    assert places(loss) == [[(0, 0), (WIDTH / 2, HEIGHT), (WIDTH, HEIGHT / 2)]]
    assert places(loss, 1) == [[(WIDTH, HEIGHT * 3 / 4)] * 2], "a single point is a dot"
    assert (lr.metric, [curve.name for curve in lr.curves]) == ("lr", ["rank 0, attempt 1"])
    assert charts([], "step") == []


@pytest.mark.parametrize("axis", ["step", "time"])
def test_a_program_that_begins_again_at_an_earlier_step_begins_a_new_piece(axis: Axis) -> None:
    points = [point(0, 0, x=0), point(10, 10, x=1), point(5, 20, x=2), point(10, 30, x=3)]
    (chart,) = charts([line(*points)], axis)
    assert [len(piece) for piece in places(chart)] == [2, 2]
    assert chart.curves[0].last == "3"


VALUES = st.floats() | st.floats(-10, 10)
LINE = st.lists(st.tuples(st.integers(0, 10**9), VALUES), max_size=30).map(
    lambda found: line(*(point(step, 10 * n, loss=value) for n, (step, value) in enumerate(found)))
)


@given(st.lists(LINE, max_size=4), st.sampled_from(["step", "time"]))
def test_curves_of_any_values_stay_in_their_box_and_never_run_backwards(
    lines: list[Progress], axis: Axis
) -> None:
    drawn = charts(lines, axis)
    finite = [p for each in lines for p in each.points if math.isfinite(float(p.metrics["loss"]))]
    assert bool(drawn) == bool(finite)
    for chart in drawn:
        assert all(0 <= tick.at <= 100 for tick in chart.ticks)
        assert len(chart.ticks) <= 16
        for number, curve in enumerate(chart.curves):
            assert re.fullmatch(r"(M[\d.]+ [\d.]+(L[\d.]+ [\d.]+)+)+", curve.path)
            for piece in places(chart, number):
                across = [x for x, _ in piece]
                assert across == sorted(across)
                assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in piece)
