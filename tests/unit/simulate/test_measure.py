"""The report of a simulation: step functions, spreads, dues of queues, and all its numbers."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.simulate.history import History, Life, Segment, StartForecast, Steps
from hyperjob_sandbox.simulate.measure import due_of, measure, percent, spread
from hyperjob_sandbox.simulate.workload import Submission


def steps(*pairs: tuple[float, float]) -> Steps:
    found = Steps()
    for time, value in pairs:
        found.set(time, value)
    return found


@given(
    end=st.integers(1, 10**7) | st.floats(1e-3, 1e9),
    parts=st.integers(1, 250),
    changes=st.lists(st.tuples(st.floats(0, 2), st.integers(0, 999)), max_size=12),
)
def test_averages_lose_no_part_of_any_length(
    end: float, parts: int, changes: list[tuple[float, int]]
) -> None:
    """Each part has the integral over it, and a constant is its own average in every part."""
    found = steps(*((at * end, value) for at, value in sorted(changes)))
    edges = [end * part / parts for part in range(parts + 1)]
    wanted = [
        (found.integral(high) - found.integral(low)) * parts / end
        for low, high in itertools.pairwise(edges)
    ]
    assert found.averages(end, parts) == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_a_spread_has_nearest_ranks() -> None:
    found = spread(range(100, 0, -1))
    assert (found.count, found.mean, found.p50, found.p95, found.p99, found.max) == (
        *(100, 50.5, 50, 95, 99, 100),
    )
    one = spread([7])
    assert (one.count, one.mean, one.p50, one.p99, one.max) == (1, 7, 7, 7, 7)
    assert spread([1, 2, 3]).p50 == 2
    assert spread([1, 2]).p50 == 1
    none = spread([])
    assert (none.count, none.mean, none.p50, none.max) == (0, 0, 0, 0)
    assert percent(0.1234) == "12.3%"


@pytest.mark.parametrize(
    ("demand", "shares", "due"),
    [
        ({"a": 1, "b": 1}, {"a": 4, "b": 4}, {"a": 1, "b": 1}),
        ({"a": 9, "b": 9}, {"a": 6, "b": 2}, {"a": 6, "b": 2}),
        ({"a": 1, "b": 9}, {"a": 4, "b": 4}, {"a": 1, "b": 7}),
        ({"a": 1, "b": 9, "c": 9}, {"a": 4, "b": 2, "c": 2}, {"a": 1, "b": 3.5, "c": 3.5}),
        ({"a": 3, "b": 4, "c": 9}, {"a": 4, "b": 4, "c": 4}, {"a": 3, "b": 4, "c": 5}),
        ({"a": 9, "b": 9}, {"a": 4}, {"a": 4, "b": 0}),
        ({"a": 0, "b": 9}, {"a": 4, "b": 4}, {"a": 0, "b": 8}),
        ({"a": 4, "b": 4}, {"a": 4, "b": 4}, {"a": 4, "b": 4}),
        ({}, {}, {}),
    ],
)
def test_the_due_of_queues(demand: Any, shares: Any, due: Any) -> None:
    assert due_of(demand, shares) == pytest.approx(due)


def life(key: str, arrival: float, gpus: int, *, queue: str = "a", **more: Any) -> Life:
    metadata = {"namespace": "ml", "name": key}
    job = Submission(
        arrival=arrival, duration=30.0, gpus=gpus, queue=queue, hyperjob={"metadata": metadata}
    )
    return Life(job, **more)


def test_a_report_has_every_number() -> None:
    ran = life(
        "ran", 0, 8, ready=0, started=10, ended=70, outcome="Completed",
        segments=[Segment(10, 70, {"east": 8})], stops={"reclaim": 2}, lost=80,
        forecast=StartForecast(told=0, start=6),
    )  # fmt: skip
    failed = life(
        "failed", 40, 1, queue="b", started=50, ended=140, outcome="Failed",
        segments=[Segment(50, 140, {"east": 1, "west": 1})], stops={"node": 1, "reclaim": 1},
        forecast=StartForecast(told=40, start=60),
    )  # fmt: skip
    runs = life("runs", 90, 300, started=95, message="runs on", segments=[Segment(95, 150, {})])
    waits = life("waits", 100, 1, queue="b", message="no room")
    history = History(sizes={"east": 16, "west": 4})
    history.lives = {each.job.key: each for each in (ran, failed, runs, waits)}
    history.used = {"east": steps((10, 8), (70, 0)), "west": steps((50, 2))}
    history.queues = {"a": steps((10, 8), (70, 0))}
    history.asked = {"a": steps((0, 8), (10, 0)), "b": steps((100, 1))}
    history.free = steps((0, 20), (10, 12), (70, 20))
    history.splinters = steps((10, 8), (70, 0))
    history.end = 150
    found = measure(history, policy="p", shares={"a": 0.5, "b": 0.5})
    assert (found.policy, found.jobs, found.completed, found.failed) == ("p", 4, 1, 1)
    assert (found.never_started, found.unfinished, found.lost) == (1, 1, 80)
    assert found.stuck == {"ml/runs": "runs on", "ml/waits": "no room"}
    assert (found.window, found.end) == (100, 150)
    capacity = 20 * 100
    assert found.use == (8 * 60 + 2 * 50) / capacity
    assert found.goodput == (8 * 60 + 2 * 50 - 80) / capacity
    assert found.clusters == {"east": 480 / 1600, "west": 100 / 400}
    assert (found.wait.count, found.wait.max, found.wait.p50) == (4, 50, 10)
    assert (found.completion.max, found.completion.count) == (100, 2)
    assert found.slowdown.max == 100 / 60, "a job counts as a minute long at least"
    assert {name: each.used for name, each in found.queues.items()} == {"a": 480 / capacity, "b": 0}
    assert {name: each.share for name, each in found.queues.items()} == {"a": 0.5, "b": 0.5}
    assert found.queues["b"].wait.max == 50
    counts = {label: each.count for label, each in found.sizes.items()}
    assert counts == {"1": 2, "2-8": 1, "257+": 1}
    assert found.splinters == 480 / capacity
    assert found.idle == 10 * 20 / capacity
    assert found.stops == {"node": 1, "reclaim": 3}
    assert (found.forecasts.ahead.max, found.forecasts.late.max) == (20, 4)
    assert (found.forecasts.error.max, found.forecasts.error.count) == (10, 2)
    series = found.series
    assert len(series["clusters"]["east"]) == 120
    assert series["clusters"]["east"][10] == 0.5
    assert series["queues"]["a"][10] == 8 / 20
    assert series["free"]["free"][0] == 1
    assert series["free"]["on nodes in use"][10] == 8 / 20
    assert series["waiting"]["a"][0] == 8


@pytest.mark.parametrize(
    ("runs", "ended", "wait"),
    [
        ([], None, 90),
        ([], 60, 50),
        ([(30, 70)], 72, 20),
        ([(30, 70)], None, 50),
        ([(30, 50), (50, 60), (75, 90)], 92, 35),
        ([(30, 50), (75, 80)], None, 65),
    ],
)
def test_a_job_waits_until_its_start_and_again_after_each_stop(
    runs: list[tuple[float, float]], ended: float | None, wait: float
) -> None:
    segments = [Segment(begin, end, {"east": 8}) for begin, end in runs]
    started = runs[0][0] if runs else None
    history = History(sizes={"east": 8}, end=100)
    history.lives = {"j": life("j", 10, 8, segments=segments, started=started, ended=ended)}
    assert measure(history, policy="p", shares={}).wait.max == wait


def test_use_beyond_the_due_is_unfair_while_another_queue_has_less_than_its_due() -> None:
    def unfair(used_b: float, asked_b: float) -> float:
        history = History(sizes={"east": 10}, end=100)
        history.lives = {"last": life("last", 100, 1)}
        history.queues = {"a": steps((0, 8)), "b": steps((0, used_b))}
        history.asked = {"b": steps((0, asked_b))}
        return measure(history, policy="p", shares={"a": 0.5, "b": 0.5}).unfair

    assert unfair(2, 0) == 0
    assert unfair(2, 9) == pytest.approx(0.3)
    assert unfair(2, 1) == pytest.approx(0.1)
