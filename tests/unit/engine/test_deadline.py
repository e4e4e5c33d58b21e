"""activeDeadlineSeconds: what counts against it, the planned stop, and the end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.parse import with_status
from hyperjob_engine.model.planned import CreateChild, DeleteChild, Plan
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
)

NAMES = "hj-trainer-0", "hj-trainer-1"
CHECKPOINT = {"directory": "s3://bucket/run", "gracePeriodSeconds": 60}


def goodput(state: str, *, seconds: int = 0, **spent: int) -> Object:
    """An account whose present use of time began so many seconds ago."""
    since = micro_time(NOW - timedelta(seconds=seconds))
    milliseconds = {use: 1000 * number for use, number in spent.items()}
    return {"ratio": "0.000", "since": since, "state": state, "milliseconds": milliseconds}


def world(
    account: Object | None = None, *, jobs: bool = True, phase: str = "Running", **spec: Any
) -> Observed:
    """A HyperJob, 245 seconds old at NOW, with two sub-jobs that run where it has `jobs`."""
    known = phase if jobs else "Unplaced"
    records = [job_status(n, phase=known) for n in range(2)]
    status: Object = {"jobs": records, "state": {"phase": "Running" if jobs else "Queued"}}
    if account is not None:
        status["goodput"] = account
    made = [*child(0, phase), *child(1, phase, on="b")] if jobs else []
    raw = hyperjob(group(replicas=2), status=status, **spec)
    clusters = (cluster("a"), cluster("b"))
    return observed(raw, *made, clusters=clusters if jobs else (), now=NOW)


def over(**spec: Any) -> Observed:
    """A HyperJob that has run for as long as it may."""
    return world(goodput("productive", seconds=100), activeDeadlineSeconds=100, **spec)


def written(seen: Observed, **changes: Any) -> Observed:
    """Return what is observed once the plan's status is written."""
    status = plan(seen).status
    return replace(seen, hyperjob=with_status(seen.hyperjob, status), **changes)


def state(decided: Plan) -> tuple[str, str]:
    return decided.status["state"]["phase"], decided.status["state"]["reason"]


COUNTED = {
    "the time in which it runs": (goodput("productive", seconds=100), True),
    "what it ran before": (goodput("productive", seconds=1, productive=60, degraded=39), True),
    "lost work and starts": (
        goodput("starting", seconds=10, lostToFailures=50, lostToPlannedStops=20, starting=20),
        True,
    ),
    "no time in line": (goodput("productive", seconds=99, waitingForQueue=500), False),
    "no time without room": (
        goodput("productive", seconds=99, waitingForCapacity=500, blocked=500),
        False,
    ),
    "no suspension": (goodput("productive", seconds=99, suspended=500), False),
}


@pytest.mark.parametrize("case", COUNTED)
def test_run_time_is_all_time_except_waiting_and_suspension(case: str) -> None:
    account, over = COUNTED[case]
    for mode in ({}, {"activeDeadlineMode": "RunTime"}):
        decided = plan(world(account, activeDeadlineSeconds=100, **mode))
        expected = ("Failed", "DeadlineExceeded") if over else ("Running", "JobsRunning")
        assert state(decided) == expected


@pytest.mark.parametrize(("limit", "phase"), [(245, "Failed"), (246, "Pending")])
def test_the_total_time_counts_from_the_creation_also_in_line(limit: int, phase: str) -> None:
    account = goodput("waitingForQueue", seconds=245)
    spec = {"activeDeadlineSeconds": limit, "activeDeadlineMode": "Total"}
    assert state(plan(world(account, jobs=False, **spec)))[0] == phase


def test_a_waiting_hyperjob_does_not_end_by_its_run_time() -> None:
    account = goodput("waitingForQueue", seconds=245)
    assert state(plan(world(account, jobs=False, activeDeadlineSeconds=1)))[0] == "Pending"


WAITS = {
    "running": (goodput("productive", seconds=60), {}, 40),
    "in total": (
        goodput("productive", seconds=60),
        {"activeDeadlineSeconds": 300, "activeDeadlineMode": "Total"},
        55,
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_the_next_pass_is_at_the_deadline(case: str) -> None:
    account, spec, left = WAITS[case]
    seen = world(account, **{"activeDeadlineSeconds": 100, **spec})
    assert plan(seen).requeue_after == timedelta(seconds=left)
    after = replace(seen, now=seen.now + timedelta(seconds=left))
    assert state(plan(after)) == ("Failed", "DeadlineExceeded")


def test_no_pass_is_due_for_a_deadline_that_does_not_come_closer() -> None:
    asleep = world(
        goodput("suspended", seconds=60, productive=10),
        jobs=False,
        suspend=True,
        activeDeadlineSeconds=100,
    )
    assert plan(asleep).requeue_after is None


def test_without_checkpoints_the_end_comes_first_and_then_the_stop_of_the_sub_jobs() -> None:
    seen = over()
    decided = plan(seen)
    assert decided.actions == ()
    text = "activeDeadlineSeconds has passed: 100 s of run time"
    assert decided.status["state"]["message"] == text
    condition = decided.status["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Failed", "DeadlineExceeded")
    assert {each["reason"] for each in decided.status["jobs"]} == {"EndedWithHyperJob"}
    deleted = [each.name for each in plan(written(seen)).actions if isinstance(each, DeleteChild)]
    assert deleted == [*NAMES]


def test_with_checkpoints_a_planned_stop_comes_first_and_the_end_says_what_was_saved() -> None:
    ran = SubJobTraining(
        step=90,
        updated=NOW,
        start_step=0,
        started=NOW - timedelta(seconds=90),
        saved_step=50,
        saved=NOW - timedelta(seconds=40),
        followed=True,
    )
    seen = over(checkpoint=CHECKPOINT)
    seen = replace(seen, trainings=dict.fromkeys(NAMES, ran))
    decided = plan(seen)
    assert decided.actions == ()
    assert state(decided) == ("Stopping", "DeadlineExceeded")
    stop = decided.status["stop"]
    assert stop["cause"] == "DeadlineExceeded"
    assert stop["until"] == rfc3339(NOW + timedelta(seconds=66))
    stopping = written(seen)
    kinds = [type(each) for each in plan(stopping).actions]
    assert kinds == [DeleteChild, DeleteChild]
    # The programs saved a checkpoint after SIGTERM, and their logs are at their ends.
    saved = replace(ran, step=91, saved_step=91, updated=NOW, saved=NOW, ended=True)
    gone = written(
        stopping,
        jobs={},
        policies={},
        bindings={},
        trainings=dict.fromkeys(NAMES, saved),
        pods_left=dict.fromkeys(NAMES, 0),
    )
    ended = plan(gone)
    assert state(ended) == ("Failed", "DeadlineExceeded")
    assert ended.status["checkpoint"]["resumeStep"] == 91
    assert not ended.status.get("stop")


def test_a_program_that_does_not_end_delays_the_end_by_its_grace_period_at_most() -> None:
    seen = over(checkpoint=CHECKPOINT)
    stopping = written(seen)
    assert state(plan(stopping))[0] == "Stopping"
    late = replace(stopping, now=NOW + timedelta(seconds=67))
    assert state(plan(late)) == ("Failed", "DeadlineExceeded")


def test_a_request_and_a_failure_after_the_deadline_restart_nothing() -> None:
    seen = over(checkpoint=CHECKPOINT, failurePolicy={"maxRestarts": 3})
    stopping = written(seen)
    asked = {"training.volcano.sh/restart": "now"}
    again = replace(stopping, hyperjob=replace(stopping.hyperjob, annotations=asked))
    decided = plan(again)
    assert not any(isinstance(each, CreateChild) for each in decided.actions)
    assert state(decided) == ("Stopping", "DeadlineExceeded")


def test_a_hyperjob_that_completes_in_time_is_completed() -> None:
    assert state(plan(over(phase="Completed"))) == ("Completed", "JobsCompleted")


def test_a_raised_limit_during_the_stop_lets_the_training_go_on() -> None:
    seen = over(checkpoint=CHECKPOINT)
    stopping = written(seen)
    deadline = stopping.hyperjob.deadline
    raised = replace(deadline, limit=timedelta(days=1))
    gone = replace(
        stopping,
        hyperjob=replace(stopping.hyperjob, deadline=raised),
        now=NOW + timedelta(seconds=67),
        jobs={},
        policies={},
        bindings={},
    )
    resumed = written(gone)
    assert [type(each) for each in plan(resumed).actions] == [CreateChild, CreateChild]
