"""`status.training`: progress of all sub-jobs together, percent, pace and the estimated end."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.sdk.progress import WAITS
from hyperjob_core.api.lines import ProgressLine
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.model.training import (
    WINDOW,
    Track,
    WaitShare,
    advance,
    training_of,
    used_to_it,
)
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons import stacks
from hyperjob_engine.reasons.reason import Reason, has_lost, stop_text
from hyperjob_engine.reasons.stacks import Pod
from hyperjob_engine.status.training import combined, with_last_lines
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    vcjob_status,
)

BEGAN = NOW - timedelta(minutes=5)


def said(step: int, *, minute: int = 0, **fields: Any) -> SubJobTraining:
    known = {"start_step": 0, "started": BEGAN, "uid": "uid-hj-trainer-0"}
    at = NOW + timedelta(minutes=minute)
    return SubJobTraining(step=step, updated=at, **{**known, **fields})


def seen(read: SubJobTraining | None, **status: Any) -> Observed:
    """Observe a HyperJob of one sub-job that runs."""
    jobs = [job_status(0, phase="Running")]
    raw = hyperjob(group(replicas=1), status={"jobs": jobs, **status})
    found = observed(raw, job(phase="Running"), binding(cluster="a"))
    return replace(found, trainings={} if read is None else {"hj-trainer-0": read})


def told(read: SubJobTraining | None, **status: Any) -> Object:
    decided = plan(seen(read, **status)).status
    return decided.get("training") or {}


@pytest.mark.parametrize(
    ("step", "steps", "percent", "progress"),
    [
        (0, 200, 0, "0%"),
        (1, 200, 0, "0%"),
        (2, 200, 1, "1%"),
        (199, 200, 99, "99%"),
        (200, 200, 100, "100%"),
        (201, 200, 100, "100%"),
        (400, 200, 100, "100%"),
        (7, None, None, "step 7"),
    ],
)
def test_the_percentage_is_whole_and_100_at_the_end_alone(
    step: int, steps: int | None, percent: int | None, progress: str
) -> None:
    found = told(said(step, steps=steps))
    assert (found.get("steps"), found.get("percent")) == (steps, percent)
    assert found["progress"] == progress


@pytest.mark.parametrize(
    ("speed", "text"),
    [
        (None, None),
        (0.0, None),
        (0.012345, "0.0123"),
        (12.345, "12.3"),
        (998.4, "998"),
        (1000.0, "1000"),
        (1000.6, "1001"),
        (1234.5, "1234"),
    ],
)
def test_a_speed_has_three_digits_and_from_a_thousand_on_no_decimals(
    speed: float | None, text: str | None
) -> None:
    assert told(said(5, steps_per_second=speed)).get("stepsPerSecond") == text


def after(seconds: float) -> str:
    return rfc3339(NOW + timedelta(seconds=seconds))


DAY = 86400
ENDS = {
    "at the present speed": (100, 2.0, None, 50),
    "not without a number of steps": (None, 2.0, None, None),
    "not without a speed": (100, None, None, None),
    "not at the last step": (0, 2.0, None, None),
    "not after it": (-1, 2.0, None, None),
    "in ten years": (3650 * DAY, 1.0, None, 3650 * DAY),
    "not later than in ten years": (3650 * DAY + 1, 1.0, None, None),
    "as it was told, 29 s later": (100, 1.0, 129, 129),
    "as it was told, 29 s earlier": (100, 1.0, 71, 71),
    "anew, 30 s later": (100, 1.0, 130, 100),
    "anew, 30 s earlier": (100, 1.0, 70, 100),
    "as it was told, within a twentieth": (10000, 1.0, 10499, 10499),
    "anew, at a twentieth": (10000, 1.0, 10500, 10000),
    "anew, where what was told is over": (20, 1.0, 0, 20),
    "as it was told, a second ahead": (20, 1.0, 1, 1),
}


@pytest.mark.parametrize(("left", "speed", "before", "end"), ENDS.values(), ids=ENDS)
def test_the_end_is_estimated(
    left: int | None, speed: float | None, before: int | None, end: int | None
) -> None:
    steps = None if left is None else 1000 + left
    old = {} if before is None else {"estimatedCompletionTime": after(before)}
    found = told(said(1000, steps=steps, steps_per_second=speed), training=old)
    assert found.get("estimatedCompletionTime") == (None if end is None else after(end))


def test_what_was_told_stays_while_no_program_says_anything_new() -> None:
    """The log of another sub-job was read to its end without a word."""
    old = {"step": 9, "progress": "step 9", "updateTime": rfc3339(NOW), "startTime": rfc3339(NOW)}
    assert told(None, training=old) == old
    assert told(said(0, reported=False), training=old) == old
    assert told(said(0, reported=False)) == {}


def test_the_number_of_steps_stays_when_a_program_does_not_say_it_again() -> None:
    assert told(said(50), training={"steps": 100})["progress"] == "50%"
    assert told(said(50, steps=200), training={"steps": 100})["progress"] == "25%"


def test_the_metrics_are_those_of_the_last_line() -> None:
    assert told(said(50, metrics={"loss": "0.5"}))["metrics"] == {"loss": "0.5"}
    assert "metrics" not in told(said(50), training={"metrics": {"loss": "0.7"}})


ACCOUNT = {"since": "2026-01-02T03:00:00Z", "milliseconds": {"productive": 1000}}


def test_the_last_lines_are_added_when_the_hyperjob_has_ended() -> None:
    found = seen(said(100, steps=100), goodput=ACCOUNT)
    ended = with_last_lines(found, {"goodput": ACCOUNT, "more": 1})
    assert ended["training"]["progress"] == "100%"
    assert ended["more"] == 1
    # They came after the end, which takes nothing out of the time that was productive.
    assert ended["goodput"]["milliseconds"] == {"productive": 1000}
    assert ended["goodput"]["since"] == "2026-01-02T03:00:00.000000Z"


@pytest.mark.parametrize(
    ("training", "status"),
    [
        (None, {"goodput": ACCOUNT}),
        (said(0, reported=False), {"goodput": ACCOUNT}),
        (said(100), {}),
        (said(100), {"goodput": {"since": "never"}}),
    ],
    ids=["no log", "no word", "no account", "an account that cannot be read"],
)
def test_nothing_is_added_without_new_lines_or_an_account(
    training: SubJobTraining | None, status: Object
) -> None:
    assert with_last_lines(seen(training, **status), status) is status


@pytest.mark.parametrize(
    ("phase", "step", "progress"),
    [("Completed", 99, "100%"), ("Completed", 98, "98%"), ("Failed", 99, "99%")],
)
def test_an_ended_training_has_no_expected_end_and_a_loop_that_completed_no_step_left(
    phase: str, step: int, progress: str
) -> None:
    found = seen(said(step, steps=100, steps_per_second=2.0), goodput=ACCOUNT)
    ended = with_last_lines(found, {"goodput": ACCOUNT, "state": {"phase": phase}})["training"]
    assert (ended["step"], ended["progress"]) == (step, progress)
    assert "estimatedCompletionTime" not in ended


def test_nothing_is_added_twice() -> None:
    found = seen(said(100, steps=100), goodput=ACCOUNT)
    once = with_last_lines(found, {"goodput": ACCOUNT})
    assert with_last_lines(found, once) is once


STOPS: dict[str, tuple[Object, str, bool]] = {
    "nothing is known": ({}, "", False),
    "a failure is not planned": ({"stopCause": "Failure", "stoppedStep": 9}, "", False),
    "a lost cluster is not planned": ({"stopCause": "ClusterLost", "stoppedStep": 9}, "", False),
    "no cause": ({"stoppedStep": 9}, "", False),
    "an unknown cause": ({"stopCause": "Odd", "stoppedStep": 9}, "", False),
    "no step": ({"stopCause": "Suspended", "resumeStep": 3}, "", False),
    "no checkpoint": (
        {"stopCause": "Suspended", "stoppedStep": 9},
        "step 9 was reached, and no sub-job has reported a checkpoint",
        True,
    ),
    "no step was made": (
        {"stopCause": "Migrated", "stoppedStep": 0},
        "step 0 was reached, and no sub-job has reported a checkpoint",
        False,
    ),
    "one step too few": (
        {"stopCause": "Restarted", "stoppedStep": 9, "resumeStep": 8},
        "step 9 was reached, and all sub-jobs have saved step 8",
        True,
    ),
    "nothing is saved": (
        {"stopCause": "Restarted", "stoppedStep": 9, "resumeStep": 0},
        "step 9 was reached, and all sub-jobs have saved step 0",
        True,
    ),
    "all is saved": (
        {"stopCause": "Preempted", "stoppedStep": 9, "resumeStep": 9},
        "saved at step 9",
        False,
    ),
    "more is saved": (
        {"stopCause": "Reclaimed", "stoppedStep": 9, "resumeStep": 10},
        "saved at step 10",
        False,
    ),
    "not saved, and not planned": (
        {"stopCause": "Failure", "stoppedStep": 9, "resumeStep": 1},
        "",
        False,
    ),
}


@pytest.mark.parametrize(("entry", "text", "lost"), STOPS.values(), ids=STOPS)
def test_a_planned_stop_says_what_it_did_not_save(entry: Object, text: str, lost: bool) -> None:
    status = {"checkpoint": entry}
    assert (stop_text(status), has_lost(status)) == (text, lost)


@pytest.mark.parametrize(
    ("phase", "more", "has_end"),
    [("Running", {}, True), ("Running", {"suspend": True}, False), ("Pending", {}, False)],
)
def test_an_end_is_expected_only_while_steps_are_made(
    phase: str, more: Object, has_end: bool
) -> None:
    old = {"step": 10, "steps": 100, "estimatedCompletionTime": rfc3339(NOW)}
    known = [job_status(0, phase=phase)]
    raw = hyperjob(group(replicas=1), status={"jobs": known, "training": old}, **more)
    found = observed(raw, job(phase=phase), binding(cluster="a"))
    decided = plan(found).status
    assert ("estimatedCompletionTime" in decided["training"]) is has_end
    assert decided["training"]["step"] == 10


def ended(read: SubJobTraining, *, seconds: float = 1) -> Plan:
    """Plan a HyperJob whose only sub-job has completed so many seconds ago."""
    jobs = [job_status(0, phase="Running")]
    raw = hyperjob(group(replicas=1), status={"jobs": jobs})
    since = rfc3339(NOW - timedelta(seconds=seconds))
    done = vcjob_status("Completed", since=since)
    found = observed(raw, job(), binding(cluster="a", status=done))
    return plan(replace(found, trainings={"hj-trainer-0": read}))


def test_the_end_waits_for_the_last_lines() -> None:
    waits = ended(said(50, steps=100))
    assert (waits.status, waits.requeue_after) == (None, timedelta(seconds=9))
    done = ended(said(100, steps=100, ended=True)).status
    assert (done["state"]["phase"], done["training"]["progress"]) == ("Completed", "100%")


def test_the_end_waits_ten_seconds_at_most_whatever_the_clock_of_the_member_says() -> None:
    assert ended(said(50, steps=100), seconds=10).status is not None
    ahead = ended(said(50, steps=100), seconds=-3600)
    assert ahead.requeue_after == timedelta(seconds=10)
    seen_ago = said(50, steps=100, ends=NOW - timedelta(seconds=10))
    assert ended(seen_ago, seconds=-3600).status is not None
    assert ended(replace(said(50), attempt=3)).status is not None, "of another attempt"


def voice(training: SubJobTraining | None, *, group: str = "a", attempt: int = 0) -> JobStatus:
    return JobStatus(name="", replicated_job=group, attempt=attempt, training=training)


def test_the_furthest_step_counts_since_the_first_start() -> None:
    first, second = said(5, start_step=1), said(9, minute=1, start_step=4, started=NOW)
    for voices in ([voice(first), voice(second)], [voice(second), voice(first)]):
        found = combined(voices)
        assert (found.step, found.start_step, found.started) == (9, 1, first.started)


def test_of_equal_steps_the_latest_line_counts() -> None:
    early, late = said(5, minute=1, steps=7), said(5, minute=2, steps=8)
    found = combined([voice(late), voice(early)])
    assert (found.updated, found.steps) == (late.updated, 8)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ([3, 2, None], 2),
        ([3, None, 4], 3),
        ([0, 3], 0),
        ([1, 0], 0),
        ([None, None], None),
        ([2, 1], 1),
    ],
)
def test_the_checkpoint_is_the_oldest_of_those_that_have_one(
    saved: list[int | None], expected: int | None
) -> None:
    made = [
        said(9, saved_step=step, saved=None if step is None else NOW + timedelta(hours=step))
        for step in saved
    ]
    found = combined([voice(each) for each in made])
    assert found.saved_step == expected
    assert found.saved == (None if expected is None else NOW + timedelta(hours=expected))


def test_only_the_first_replicated_job_that_says_anything_counts() -> None:
    silent = voice(said(99, reported=False), group="silent")
    found = combined([voice(None), silent, voice(said(3), group="a"), voice(said(8), group="b")])
    assert found.step == 3


def test_what_an_earlier_attempt_said_counts_only_while_no_present_one_has_spoken() -> None:
    before, now = said(50, attempt=0), said(7, attempt=1)
    found = combined([voice(before, attempt=1), voice(now, attempt=1)])
    assert found.step == 7
    found = combined([voice(before, attempt=1), voice(said(40, attempt=0), attempt=1)])
    assert found.step == 50


def test_the_number_of_steps_is_the_furthest_ones_or_any_others() -> None:
    found = combined([voice(said(3, steps=10)), voice(said(9))])
    assert found.steps == 10
    found = combined([voice(said(3, steps=10)), voice(said(9, steps=20))])
    assert found.steps == 20


def test_nothing_is_made_of_nothing() -> None:
    assert combined([]) is None
    assert combined([voice(None), voice(said(1, reported=False))]) is None


T0 = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = T0 + timedelta(days=99)


def track_of(gaps: Iterable[float]) -> Track:
    """Return the track of a program with so many seconds between its lines, of a step each."""
    made = None
    for step, second in enumerate(accumulate(gaps, initial=0.0)):
        line = ProgressLine(time=T0 + timedelta(seconds=second), step=step)
        made = advance(made, line, now=NEVER)
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
