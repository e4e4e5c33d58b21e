"""A program that becomes slower than its own usual pace."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.sdk.progress import WAITS
from hyperjob_core.api.lines import ProgressLine
from hyperjob_core.api.phases import Phase
from hyperjob_engine.model.stalls import WaitShare
from hyperjob_engine.model.training import WINDOW, Track, advance, training_of, used_to_it
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons import stacks
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.stacks import Pod
from tests.unit.engine.test_training_status import said, seen

T0 = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = T0 + timedelta(days=99)


def track_of(gaps: Iterable[float]) -> Track:
    """Return the track of a program with so many seconds between its lines, of a step each."""
    made = None
    for step, second in enumerate(accumulate(gaps, initial=0.0)):
        line = ProgressLine(time=T0 + timedelta(seconds=second), step=step)
        made = advance(made, line, now=NEVER)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("gaps", "slow"),
    [
        ([1.0] * 40, False),
        ([1.0] * 15 + [4.5] * 5, True),
        ([1.0] * 15 + [4.5] * 2, False),
        ([1.0] * 15 + [1.9] * 50, False),
        ([1.0] * 5 + [4.5] * 10, False),
        ([1.0] * 15 + [4.5] * 500, True),
        ([1.0] * 15 + [4.5] * 50 + [1.7] * 20, True),
        ([1.0] * 15 + [4.5] * 50 + [1.2] * 5, False),
        (([1.0] * 9 + [15.0]) * 20, False),
        ([60.0] + [0.1, 0.3, 0.2] * 30, False),
    ],
    ids=[
        "steady",
        "five slow lines",
        "two slow lines are a pause",
        "somewhat slower",
        "five lines show no usual pace",
        "it stays slow",
        "not quite as before",
        "as before",
        "an evaluation after each nine lines",
        "it compiles first, and its steps differ",
    ],
)
def test_a_training_is_slow_where_five_lines_take_twice_as_long_as_usual(
    gaps: list[float], slow: bool
) -> None:
    assert track_of(gaps).slow is slow


@given(st.lists(st.floats(1.0, 1.9), min_size=0, max_size=80))
def test_a_pace_that_never_halves_is_never_slow(gaps: list[float]) -> None:
    assert not track_of(gaps).slow


def test_an_announced_phase_is_no_slow_step() -> None:
    made = track_of([1.0] * 20)
    for more in range(1, 11):
        time = T0 + timedelta(seconds=20 + 60 * more)
        line = ProgressLine(time=time, step=20 + more)
        made = advance(replace(made, phase="evaluate"), line, now=NEVER)
    assert not made.slow


def test_the_pace_of_work_that_has_changed_for_good_is_the_usual_one_after_the_window() -> None:
    lines = int(WINDOW.total_seconds() / 4.0)
    longer = track_of([1.0] * 20 + [4.0] * (lines - 10))
    assert used_to_it(longer) == longer
    made = used_to_it(track_of([1.0] * 20 + [4.0] * (lines + 10)))
    assert (made.slow, made.pace) == (False, 4.0)
    for more, gap in enumerate([4.0] * 20 + [9.0] * 5, start=1):
        line = ProgressLine(time=made.last[1] + timedelta(seconds=gap), step=made.last[0] + 1)
        made = advance(made, line, now=NEVER)
        assert made.slow is (more >= 23), "it is slow again against its new pace"


def test_the_status_says_how_slow_and_for_which_pod_the_others_wait() -> None:
    slow = training_of(track_of([0.125] * 15 + [0.5] * 5), attempt=0, uid="uid-hj-trainer-0")
    waits = tuple(
        WaitShare(Pod(cluster, f"{cluster}-pod", cluster), part)
        for cluster, part in (("east", 0.9), ("west", 0.1))
    )
    decided = plan(replace(seen(slow), waits=waits))
    state = decided.status["state"]
    assert (state["phase"], state["reason"]) == (Phase.RUNNING, Reason.SLOW_PROGRESS)
    said_so = "it makes 2 steps/s, and 8 usually: the others wait for pod west/west-pod"
    assert state["message"].endswith(said_so)
    assert [each.reason for each in decided.events if each.type == "Warning"] == ["SlowProgress"]
    usual = plan(seen(said(5, usual="8"))).status
    assert usual["state"]["reason"] == Reason.JOBS_RUNNING
    assert "usualStepsPerSecond" not in usual["training"]


def test_program_and_controller_know_the_same_functions_that_wait() -> None:
    assert WAITS == stacks.WAITS
