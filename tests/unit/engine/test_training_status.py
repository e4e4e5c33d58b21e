"""`status.training`: percent, speed and the estimated end, just before and at each limit."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import has_lost, stop_text
from hyperjob_engine.status.training import with_last_lines
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


def said(step: int, **fields: Any) -> SubJobTraining:
    return SubJobTraining(
        step=step, updated=NOW, start_step=0, started=BEGAN, uid="uid-hj-trainer-0", **fields
    )


def seen(read: SubJobTraining | None, **status: Any) -> Observed:
    """Observe a HyperJob of one sub-job that runs."""
    jobs = [job_status(0, phase="Running")]
    raw = hyperjob(group(replicas=1), status={"jobs": jobs, **status})
    found = observed(raw, job(phase="Running"), binding(cluster="a"))
    return replace(found, trainings={} if read is None else {"hj-trainer-0": read})


def told(read: SubJobTraining | None, **status: Any) -> Object:
    decided = plan(seen(read, **status)).status
    found: Object = decided.get("training") or {}
    return found


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
