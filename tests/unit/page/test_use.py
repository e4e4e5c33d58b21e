"""Use over time: samples within a bound, each until the next one, and areas that fit their box."""

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob.client.usage import ClusterUse, QueueUse
from hyperjob_page.charts.use import chart, fleet
from hyperjob_page.use import SAMPLES, Series, UseMemory, together

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"
POINT = st.none() | st.integers(1, 64).flatmap(
    lambda total: st.integers(0, 2 * total).map(lambda used: (used, total))
)


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


TIMES = [at(60 * n) for n in range(11)]
POINTS = st.lists(POINT, min_size=10, max_size=10)


def cluster(name, used, total):
    return ClusterUse(
        cluster=name,
        ready=True,
        accelerator=GPU,
        allocatable=total,
        used=used,
        free=0,
        hyperjobs=0,
    )


def queue(name, used, share):
    return QueueUse(
        queue=name,
        state="Open",
        accelerator=GPU,
        share=share,
        deserved=7,
        capability=None,
        used=used,
        ended=None,
        waiting=0,
        running_hyperjobs=0,
        waiting_hyperjobs=0,
    )


def steady(name, used, total):
    return Series(name, GPU, [(used, total)] * 10)


def test_a_sample_lasts_until_the_next_one_and_the_last_until_now():
    memory = UseMemory()
    memory.add(at(0), [cluster("a", 3, 8)], [queue("q", 3, 16)])
    memory.add(at(60), [cluster("b", 1, 4), cluster("c", 0, None)], [queue("q", 4, None)])
    clusters, queues = memory.clusters(at(90)), memory.queues(at(90))
    assert clusters.times == queues.times == [at(0), at(60), at(90)]
    assert clusters.series == [
        Series("a", GPU, [(3, 8), None]),
        Series("b", GPU, [None, (1, 4)]),
    ]
    assert queues.series == [Series("q", GPU, [(3, 16), (4, 7)])], "without a share the deserved"
    assert memory.begin == at(0)


def test_a_memory_of_any_length_is_bounded_and_has_its_begin_and_its_present():
    memory = UseMemory()
    for n in range(10 * SAMPLES):
        memory.add(at(n), [cluster("a", n % 8, 8)], [])
    found = memory.clusters(at(10 * SAMPLES))
    assert SAMPLES / 2 <= len(found.times) <= SAMPLES + 1
    assert (found.times[0], found.times[-2]) == (at(0), at(10 * SAMPLES - 1))
    (series,) = found.series
    assert len(series.points) == len(found.times) - 1


def test_sums_are_of_what_is_known():
    one, other = Series("a", GPU, [(1, 8), (1, 8), None]), Series("b", GPU, [None, (2, 8), None])
    assert together(GPU, [one, other]) == Series("", GPU, [(1, 8), (3, 16), None])


def test_the_average_is_over_the_known_time():
    """Full for the second half of its known time is 50 percent, whatever the spans' lengths."""
    series = Series("a", GPU, [None, (0, 8), (8, 8)])
    drawn = chart([at(0), at(1000), at(1300), at(1600)], series)
    assert (drawn.mean, drawn.peak, drawn.used, drawn.total) == (50, "8", "8", "8")
    assert drawn.peak_at == "00:26 UTC"
    assert drawn.layers[0].path == "M62.5 100L81.25 100L81.25 0L100 0L100 100L62.5 100Z"
    assert drawn.limit == "M62.5 0L100 0"


@settings(max_examples=30)
@given(POINTS, st.lists(POINTS, max_size=14))
def test_areas_stay_in_their_box_and_have_the_largest_use_as_peak(points, queues):
    shares = [(Series(f"q{n}", GPU, each), n) for n, each in enumerate(queues)]
    drawn = chart(TIMES, Series("c", GPU, points), shares)
    for path in [drawn.limit, *(layer.path for layer in drawn.layers)]:
        assert re.fullmatch(r"(M[\d.]+ [\d.e-]+(L[\d.]+ [\d.e-]+)*Z?)*", path)
        numbers = [float(one) for one in re.findall(r"[\d.e-]+", path)]
        assert all(0 <= one <= 100 for one in numbers)
    used = max((point[0] for point in points if point is not None), default=0)
    assert drawn.peak == str(used)


def test_the_fleet_shows_what_each_queue_takes_and_what_none_does():
    clusters = [steady(f"c{n}", 6, 8) for n in range(2)]
    queues = [steady("big", 7, 8), steady("small", 2, 8), steady("idle", 0, 8)]
    (drawn,) = fleet(TIMES, clusters, queues, {"big": 0, "small": 1}.__getitem__)
    assert [(layer.kind, layer.label, layer.now) for layer in drawn.layers] == [
        ("queue", "queue big", "7"),
        ("queue", "queue small", "2"),
        ("other", "other work", "3"),
    ]
    assert (drawn.used, drawn.total, drawn.mean) == ("12", "16", 75)


def test_of_many_queues_the_smallest_share_an_area():
    queues = [steady(f"q{n:02}", n, 8) for n in range(1, 15)]
    (drawn,) = fleet(TIMES, [steady("c", 105, 200)], queues, lambda _: 0)
    assert [layer.label for layer in drawn.layers][-2:] == ["queue q03", "2 more queues"]
    assert drawn.layers[-1].now == "3"
