"""Use over time: samples held until the next one, areas that fit their box, Events as phases."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob.ui.charts.axis import TimeScale
from hyperjob.ui.charts.use import chart, fleet
from hyperjob.ui.history.backfill import changes_of, filled
from hyperjob.ui.history.spans import Span
from hyperjob.ui.history.use import HELD, SLOTS, Series, series, together

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
SCALE = TimeScale(BEGIN, BEGIN + timedelta(days=1))
GPU = "nvidia.com/gpu"
POINT = st.none() | st.integers(1, 64).flatmap(
    lambda total: st.integers(0, 2 * total).map(lambda used: (used, total))
)
POINTS = st.lists(POINT, min_size=SLOTS, max_size=SLOTS)


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


def samples(*found):
    return [("c1", GPU, at(seconds).timestamp(), used, total) for seconds, used, total in found]


def steady(name, used, total):
    spent = (used * 86400.0, total * 86400.0)
    return Series(name, GPU, [(used, total)] * SLOTS, (used, total), spent)


def test_a_sample_is_good_until_the_next_and_for_a_while_at_most():
    rows = samples((-60, 3, 8), (120, 5, 8))
    (found,) = series(rows, BEGIN, at(7200))  # a slot is a minute
    held = int(HELD.total_seconds()) // 60
    assert found.points[:4] == [(3, 8), (3, 8), (5, 8), (5, 8)]
    assert found.points[1 + held] == (5, 8)
    assert found.points[2 + held] is None, "nothing was recorded"
    assert found.now == (0, 0)


def test_a_slot_is_the_mean_of_its_time():
    """Full for half of its 12 minutes is 50 percent, also where a day is 120 slots."""
    rows = samples((0, 0, 8), (60, 8, 8), (420, 0, 8))
    (found,) = series(rows, at(720) - timedelta(days=1), at(720))
    assert found.points[:-1] == [None] * (SLOTS - 1)
    assert found.points[-1] == (4, 8)
    drawn = chart(found, TimeScale(at(720) - timedelta(days=1), at(720)))
    assert (drawn.mean, drawn.peak, drawn.used) == (50, "4", 0)


@given(
    st.lists(
        st.tuples(st.integers(-1500, 7200), st.integers(0, 16)),
        min_size=1,
        unique_by=lambda one: one[0],
    )
)
def test_the_slots_add_up_to_the_whole_time(found):
    rows = samples(*((seconds, used, 16) for seconds, used in sorted(found)))
    (whole,) = series(rows, BEGIN, at(7200))
    ends = [*(seconds for seconds, _ in sorted(found)[1:]), 7200]
    expected = 0.0
    for (begin, used), end in zip(sorted(found), ends, strict=True):
        last = min(end, begin + HELD.total_seconds())
        expected += used * max(0.0, last - max(begin, 0))
    assert whole.spent[0] == pytest.approx(expected)
    assert all(point is None or 0 <= point[0] <= 16 for point in whole.points)


def test_sums_are_of_what_is_known():
    one = Series("a", GPU, [(1, 8)] * SLOTS, (1, 8), (1.0, 8.0))
    other = Series("b", GPU, [None] * (SLOTS - 1) + [(2, 8)], (2, 8), (2.0, 8.0))
    both = together("", GPU, [one, other])
    assert both.points[-2:] == [(1, 8), (3, 16)]
    assert (both.now, both.spent) == ((3, 16), (3.0, 16.0))


@settings(max_examples=30)
@given(POINTS, st.lists(POINTS, max_size=14))
def test_areas_stay_in_their_box_and_add_up(points, queues):
    shares = [(Series(f"q{n}", GPU, each), n) for n, each in enumerate(queues)]
    drawn = chart(Series("c", GPU, points), SCALE, shares)
    for path in [drawn.limit, *(layer.path for layer in drawn.layers)]:
        assert re.fullmatch(r"(M\d+ [\d.e-]+([VH][\d.e-]+)*Z?)*", path)
        heights = [float(one) for one in re.findall(r"(?:V|M\d+ )([\d.e-]+)", path)]
        across = [int(one) for one in re.findall(r"[HM](\d+)", path)]
        assert all(0 <= one <= 100 for one in heights)
        assert all(0 <= one <= SLOTS for one in across)
    known = [point for point in points if point is not None]
    assert drawn.peak == str(max((used for used, _ in known), default=0))


def test_the_fleet_shows_what_each_queue_takes_and_what_none_does():
    clusters = [steady(f"c{n}", 6, 8) for n in range(2)]
    queues = [steady("big", 7, 8), steady("small", 2, 8)]
    idle = steady("idle", 0, 8)
    (drawn,) = fleet(clusters, [*queues, idle], SCALE, {"big": 0, "small": 1}.__getitem__)
    assert [(layer.kind, layer.label, layer.now) for layer in drawn.layers] == [
        ("queue", "queue big", 7),
        ("queue", "queue small", 2),
        ("other", "other work", 3),
    ]
    assert (drawn.used, drawn.total, drawn.mean) == (12, 16, 75)


def unknown(begin, end):
    return Span(
        job="", attempt=1, cluster="", phase="", reason="", message="", begin=at(begin), end=at(end)
    )


def event(phase, seconds, *, uid="u1", again=None):
    said = {"reason": phase, "involvedObject": {"uid": uid}, "eventTime": at(seconds).isoformat()}
    if again is not None:
        said["series"] = {"count": 2, "lastObservedTime": at(again).isoformat()}
    return said


def test_events_are_read_by_hyperjob_in_order():
    found = changes_of(
        [
            event("Running", 20, again=60),
            event("Restarting", 40),
            event("Created", 1),
            event("Queued", 5, uid="u2"),
            {"reason": "Running"},
        ]
    )
    assert found == {
        "u1": [(at(20), "Running"), (at(40), "Restarting"), (at(60), "Running")],
        "u2": [(at(5), "Queued")],
    }


def test_only_a_time_without_phase_is_filled_in():
    changes = [(at(-5), "Pending"), (at(10), "Queued"), (at(12), "Queued"), (at(90), "Running")]
    found = filled([unknown(0, 50)], changes)
    assert [(one.phase, one.begin, one.end) for one in found] == [
        ("", at(0), at(10)),
        ("Queued", at(10), at(50)),
    ]
    assert filled([unknown(0, 50)], []) == []


@given(st.lists(st.tuples(st.integers(-5, 55), st.sampled_from(["Queued", "Running"]))))
def test_what_events_tell_never_overlaps(told):
    changes = sorted((at(seconds), phase) for seconds, phase in told)
    found = filled([unknown(0, 50)], changes)
    for one, following in pairwise(found):
        assert one.begin < one.end == following.begin
    if found:
        assert (found[0].begin, found[-1].end) == (at(0), at(50))
