"""Use over time: samples held until the next one, areas that fit their box, Events as phases."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob.ui.charts.axis import TimeScale
from hyperjob.ui.charts.use import chart, fleet
from hyperjob.ui.history.backfill import changes_of, filled
from hyperjob.ui.history.spans import Span
from hyperjob.ui.history.use import SLOTS, UNCHANGED, Series, series, summed, with_lead

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
SCALE = TimeScale(BEGIN, BEGIN + timedelta(days=1))
GPU = "nvidia.com/gpu"
POINT = st.none() | st.integers(1, 64).flatmap(
    lambda total: st.integers(0, 2 * total).map(lambda used: (used, total))
)
POINTS = st.lists(POINT, min_size=SLOTS, max_size=SLOTS)


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


def test_a_sample_is_good_until_the_next_and_for_a_while_at_most():
    begin, slots = with_lead(BEGIN, at(7200))  # a slot is a minute
    lead = slots - SLOTS
    assert at(0) - begin >= UNCHANGED
    rows = [("c1", GPU, lead - 1, 3, 8), ("c1", GPU, lead + 2, 5, 8)]
    (found,) = series(rows, slots)
    assert found.points[:4] == [(3, 8), (3, 8), (5, 8), (5, 8)]
    assert found.points[2 + lead] == (5, 8)
    assert found.points[3 + lead] is None, "nothing was recorded"


def test_sums_are_of_what_is_known():
    one = Series("a", GPU, [(1, 8)] * SLOTS)
    other = Series("b", GPU, [None] * (SLOTS - 1) + [(2, 8)])
    assert summed([one, other])[-2:] == [(1, 8), (3, 16)]


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
    assert drawn.peak == max((used for used, _ in known), default=0)
    assert drawn.used == (points[-1] or (0, 0))[0]


def test_the_fleet_shows_what_each_queue_takes_and_what_none_does():
    clusters = [Series(f"c{n}", GPU, [(6, 8)] * SLOTS) for n in range(2)]
    queues = [Series("big", GPU, [(7, 8)] * SLOTS), Series("small", GPU, [(2, 8)] * SLOTS)]
    idle = Series("idle", GPU, [(0, 8)] * SLOTS)
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
