"""Stops of a training: what is recorded, what is waited for, from which step all start again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api import table
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.lifecycle.stops import ON_ITS_WAY, OPENED_WITHIN, latest_reports
from hyperjob_engine.model.observed import Observed, PodCounts
from hyperjob_engine.model.parse import with_status
from hyperjob_engine.model.planned import CreateChild, DeleteChild, DeleteWork, Plan
from hyperjob_engine.plan import AT_ONCE, plan
from tests.support.podenv import pods_of
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
CLUSTERS = cluster("a"), cluster("b")
CHECKPOINT = {"directory": "s3://bucket/run", "gracePeriodSeconds": 60}
ASKED = {"training.volcano.sh/restart": "now"}
BEGAN = NOW - timedelta(seconds=100)


def said(
    step: int,
    saved: int | None = None,
    *,
    start: int = 0,
    began: datetime = BEGAN,
    at: datetime = NOW,
    **fields: Any,
) -> SubJobTraining:
    """What a program said: it makes one step a second."""
    return SubJobTraining(
        step=step,
        updated=at,
        start_step=start,
        started=began,
        saved_step=saved,
        saved=None if saved is None else at - timedelta(seconds=step - saved),
        **fields,
    )


def both(first: SubJobTraining, second: SubJobTraining | None = None) -> dict[str, SubJobTraining]:
    return {NAMES[0]: first, NAMES[1]: second or first}


def records(phase: str = "Running", attempt: int = 0, **fields: Any) -> list[Object]:
    return [job_status(index, phase=phase, attempt=attempt, **fields) for index in range(2)]


def world(
    trainings: Mapping[str, SubJobTraining] | None = None,
    *,
    jobs: bool = True,
    status: Object | None = None,
    now: datetime = NOW,
    annotations: Object | None = None,
    phase: str = "Running",
    attempt: int = 0,
    **spec: Any,
) -> Observed:
    """Two sub-jobs, that run where there are `jobs`."""
    spec = {"checkpoint": CHECKPOINT, "plugins": {"env": []}, **spec}
    told = {"jobs": records(phase if jobs else "Unplaced", attempt), **(status or {})}
    raw = hyperjob(group(replicas=2, gpus=60), status=told, **spec)
    raw["metadata"]["annotations"] = annotations or {}
    made = [*child(0, phase, gpus=60), *child(1, phase, gpus=60, on="b")] if jobs else []
    seen = observed(raw, *made, clusters=CLUSTERS, now=now)
    return replace(seen, trainings=trainings or {})


def recorded(seen: Observed) -> Observed:
    """Return what is observed once the plan's status is written."""
    return replace(seen, hyperjob=with_status(seen.hyperjob, plan(seen).status))


def emptied(seen: Observed, **changes: Any) -> Observed:
    """Return what is observed once all vcjobs and policies are gone; logs end with their pods."""
    left = dict.fromkeys(NAMES, 0) if "trainings" in changes else {}
    return replace(seen, jobs={}, policies={}, bindings={}, pods_left=left, **changes)


def created(decided: Plan) -> list[CreateChild]:
    return [action for action in decided.actions if isinstance(action, CreateChild)]


def resume_steps(decided: Plan) -> set[str | None]:
    found: set[str | None] = set()
    for action in created(decided):
        metadata = {**action.job["metadata"], "uid": f"uid-{action.name}"}
        env = pods_of({**action.job, "metadata": metadata})[0].env
        found.add(env.get("HYPERJOB_RESUME_STEP"))
    return found


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        pytest.param({"suspend": True}, "Suspended", id="suspend"),
        pytest.param({"annotations": ASKED}, "Restarted", id="restart"),
    ],
)
def test_a_planned_stop_is_recorded_before_anything_is_deleted(change: Object, cause: str) -> None:
    seen = world(both(said(100, 90)), **change)
    first = plan(seen)
    assert first.actions == ()
    assert first.requeue_after == AT_ONCE
    assert first.status["stop"] == {
        "cause": cause,
        "since": rfc3339(NOW),
        "until": rfc3339(NOW + timedelta(seconds=61) + ON_ITS_WAY),
        "jobs": list(NAMES),
    }
    second = recorded(seen)
    assert plan(second).actions == ()
    assert plan(second).requeue_after == OPENED_WITHIN, "the logs of the pods are not open"
    late = replace(second, now=NOW + OPENED_WITHIN)
    opened = replace(second, trainings=both(said(100, 90, followed=True)))
    ended = replace(second, trainings=both(said(100, 90, ended=True)))
    for due in (late, opened, ended, replace(second, trainings={})):
        deleted = [each.name for each in plan(due).actions if isinstance(each, DeleteChild)]
        assert sorted(deleted) == sorted(NAMES)


def test_without_spec_checkpoint_a_suspension_is_carried_out_at_once() -> None:
    decided = plan(world(both(said(100, 90)), suspend=True, checkpoint=None))
    assert len([a for a in decided.actions if isinstance(a, DeleteChild)]) == 2
    assert "stop" not in decided.status


def test_nothing_is_made_again_until_all_have_ended() -> None:
    stopping = recorded(world(both(said(100, 90)), annotations=ASKED))
    gone = emptied(stopping)
    waits = plan(gone)
    assert created(waits) == []
    assert "waits until all sub-jobs" in waits.status["state"]["message"]
    assert waits.requeue_after is not None
    one = both(said(100, 100, ended=True), said(100, 90))
    assert created(plan(replace(gone, trainings=one))) == []
    assert "stop" in plan(replace(gone, trainings=one)).status


def test_all_start_from_what_was_saved_on_the_way_out() -> None:
    stopping = recorded(world(both(said(100, 90)), annotations=ASKED))
    assert stopping.hyperjob.resume_step == 90
    ended = emptied(stopping, trainings=both(said(104, 104, ended=True)))
    over = plan(ended)
    assert created(over) == []
    assert over.status["stop"] is None
    assert over.status["checkpoint"]["resumeStep"] == 104
    assert [(each.type, each.reason) for each in over.events if each.action == "Stop"] == [
        ("Normal", "Stopped")
    ]
    again = plan(recorded(ended))
    assert len(created(again)) == 2
    assert resume_steps(again) == {"104"}


def test_what_one_sub_job_has_not_saved_no_sub_job_starts_from() -> None:
    stopping = recorded(world(both(said(100, 90)), annotations=ASKED))
    mixed = both(said(104, 104, ended=True), said(104, 90, ended=True))
    ended = emptied(stopping, trainings=mixed)
    over = plan(ended)
    (event,) = [each for each in over.events if each.action == "Stop"]
    assert (event.type, event.reason) == ("Warning", "NotSaved")
    assert "step 104 was reached, and all sub-jobs have saved step 90" in event.note
    assert "all sub-jobs have saved step 90" in over.status["state"]["message"]
    assert resume_steps(plan(recorded(ended))) == {"90"}


def test_a_sub_job_whose_program_reports_no_more_holds_up_no_checkpoint() -> None:
    old = {"attempt": 0, "step": 90, "startStep": 0, "savedStep": 90}
    old |= dict.fromkeys(("updateTime", "startTime", "savedTime"), micro_time(BEGAN))
    jobs = records(attempt=1)
    jobs[1]["training"] = old
    silent = said(0, attempt=1, reported=False)
    seen = world(
        both(said(140, 120, attempt=1), silent), status={"jobs": jobs}, annotations=ASKED, attempt=1
    )
    again = {name: replace(each, attempt=1) for name, each in seen.jobs.items()}
    stopping = recorded(replace(seen, jobs=again))
    assert stopping.hyperjob.resume_step == 90, "it may still say something"
    ended = both(said(144, 144, attempt=1, ended=True), replace(silent, ended=True))
    over = plan(emptied(stopping, trainings=ended))
    assert over.status["stop"] is None
    assert over.status["checkpoint"]["resumeStep"] == 144
    assert [each.reason for each in over.events if each.action == "Stop"] == ["Stopped"]


def test_a_program_that_says_nothing_gets_its_grace_period() -> None:
    gone = emptied(recorded(world(annotations=ASKED)))
    until = gone.hyperjob.stop
    assert created(plan(gone)) == []
    later = replace(gone, now=until.until)
    assert plan(later).status["stop"] is None
    again = plan(recorded(later))
    assert len(created(again)) == 2
    assert resume_steps(again) == {None}


def test_a_stop_is_over_when_the_sub_jobs_have_ended_by_themselves() -> None:
    stopping = recorded(world(both(said(100, 90)), suspend=True))
    completed = world(both(said(100, 100)), phase="Completed", suspend=True)
    ended = replace(stopping, jobs=completed.jobs, bindings=completed.bindings)
    assert plan(ended).status["state"]["phase"] == "Completed"
    assert plan(ended).status["stop"] is None


def test_a_suspended_hyperjob_says_what_is_saved() -> None:
    stopping = recorded(world(both(said(100, 90)), suspend=True))
    over = plan(emptied(stopping, trainings=both(said(104, 104, ended=True))))
    assert over.status["state"]["phase"] == "Suspended"
    assert over.status["state"]["message"].endswith("; saved at step 104")


def test_a_failure_waits_for_nobody_and_all_start_from_one_step() -> None:
    policy_ = {"maxRestarts": 3}
    trainings = both(said(100, 90), said(100, 80))
    seen = world(trainings, phase="Failed", failurePolicy=policy_)
    decided = plan(seen)
    assert "stop" not in decided.status
    assert decided.status["checkpoint"] == {
        "resumeStep": 80,
        "stoppedStep": 100,
        "stoppedTime": micro_time(NOW),
        "keptStep": 90,
        "keptTime": micro_time(NOW - timedelta(seconds=10)),
        "stopCause": "Failure",
    }
    assert resume_steps(plan(emptied(recorded(seen)))) == {"80"}


FAILED = {
    "resumeStep": 90,
    "stoppedStep": 100,
    "stoppedTime": micro_time(NOW - timedelta(seconds=30)),
    "keptStep": 90,
    "keptTime": micro_time(NOW - timedelta(seconds=40)),
    "stopCause": "Failure",
}


@pytest.mark.parametrize(
    ("cause", "resumed", "expected"),
    [
        ("Failure", 90, {"cause": "Failure", "stops": 1, "steps": 10, "milliseconds": 10_000}),
        ("Failure", 95, {"cause": "Failure", "stops": 1, "steps": 5, "milliseconds": 5_000}),
        ("Restarted", 100, {"cause": "Restarted", "stops": 1, "steps": 0, "milliseconds": 0}),
        ("Restarted", 120, {"cause": "Restarted", "stops": 1, "steps": 0, "milliseconds": 0}),
        ("ClusterLost", 0, {"cause": "ClusterLost", "stops": 1, "steps": 100}),
    ],
)
def test_lost_work_is_counted_when_the_program_says_where_it_resumed(
    cause: str, resumed: int, expected: Object
) -> None:
    entry = FAILED | {"stopCause": cause}
    now_said = said(resumed, start=resumed, began=NOW - timedelta(seconds=1))
    seen = world(both(now_said), status={"checkpoint": entry})
    status = plan(seen).status
    assert status["checkpoint"] == {"resumeStep": 90}
    assert expected.items() <= status["lostWork"][0].items()
    assert "lostWork" in plan(recorded(seen)).status
    assert plan(recorded(seen)).status["lostWork"] == status["lostWork"]


def test_lost_work_adds_up_by_cause() -> None:
    before = [
        {"cause": "ClusterLost", "stops": 1, "steps": 7, "milliseconds": 7},
        {"cause": "Failure", "stops": 2, "steps": 5, "milliseconds": 50},
    ]
    now_said = said(90, start=90, began=NOW - timedelta(seconds=1))
    status = {"checkpoint": FAILED, "lostWork": before}
    assert plan(world(both(now_said), status=status)).status["lostWork"] == [
        before[0],
        {"cause": "Failure", "stops": 3, "steps": 15, "milliseconds": 10_050},
    ]


def test_what_is_heard_only_while_it_stops_again_settles_the_stop_before() -> None:
    stopping = recorded(world(status={"checkpoint": FAILED}, annotations=ASKED))
    assert stopping.hyperjob.stop is not None
    last = said(96, 96, start=90, began=NOW - timedelta(seconds=6))
    status = plan(emptied(stopping, trainings=both(last))).status
    assert status["lostWork"] == [
        {"cause": "Failure", "stops": 1, "steps": 10, "milliseconds": 10_000}
    ]
    assert status["checkpoint"]["stoppedStep"] == status["checkpoint"]["resumeStep"] == 96
    assert status["checkpoint"]["stopCause"] == "Restarted"


def test_a_second_stop_before_the_program_says_a_word_counts_once() -> None:
    seen = world(both(said(100, 90)), phase="Failed", failurePolicy={"maxRestarts": 3})
    once = recorded(seen)
    again = replace(
        once, jobs=world(phase="Failed", attempt=1).jobs, hyperjob=once.hyperjob, now=NOW
    )
    assert plan(again).status["checkpoint"]["stoppedStep"] == 100


@given(
    saved=st.lists(st.none() | st.integers(0, 100), min_size=2, max_size=2),
    final=st.lists(st.none() | st.integers(0, 120), min_size=2, max_size=2),
    ends=st.booleans(),
)
def test_all_sub_jobs_are_made_with_one_step_that_each_has_saved(
    saved: Sequence[int | None], final: Sequence[int | None], ends: bool
) -> None:
    last = [
        max(pair, key=lambda each: -1 if each is None else each)
        for pair in zip(saved, final, strict=True)
    ]
    before = both(said(100, saved[0]), said(100, saved[1]))
    stopping = recorded(world(before, annotations=ASKED))
    after = both(
        said(120, last[0], ended=ends),
        said(120, last[1], ended=ends),
    )
    gone = emptied(stopping, trainings=after)
    if not ends:
        assert created(plan(gone)) == []
        gone = replace(gone, now=NOW + timedelta(seconds=61) + ON_ITS_WAY)
    (step,) = resume_steps(plan(recorded(gone)))
    told = [each for each in last if each is not None]
    assert step == (str(min(told)) if told else None)


def ending(pods: Mapping[str, int | None], *, later: float = 0, **said_of: Any) -> Observed:
    """Return a world in which both sub-jobs are deleted, and members have these pods of them."""
    started = recorded(world(both(said(190, 150)), annotations=ASKED))
    until = rfc3339(NOW + timedelta(seconds=60))
    status = {
        **started.hyperjob.status,
        "jobs": records("Restarting", 1),
        "stop": {"cause": "Restarted", "until": until, "jobs": list(NAMES)},
    }
    now = NOW + timedelta(seconds=later)
    seen = world(said_of.get("trainings"), jobs=False, status=status, attempt=1, now=now)
    return replace(seen, pods_left=pods)


ENDED = both(said(194, 194, ended=True))


@pytest.mark.parametrize(
    ("pods", "later", "trainings", "creates"),
    [
        (dict.fromkeys(NAMES, 0), 0, ENDED, True),
        (dict.fromkeys(NAMES, 0), 0, {}, True),
        (dict.fromkeys(NAMES, 0), 0, both(said(194, 194)), False),
        ({NAMES[0]: 0, NAMES[1]: 1}, 0, ENDED, False),
        ({NAMES[0]: 0, NAMES[1]: 1}, 61, ENDED, False),
        ({NAMES[0]: 0}, 0, {}, False),
        ({}, 0, {}, False),
        ({}, 0, ENDED, False),  # the end of one log is not that of all its pods
        ({}, 61, {}, True),
        (dict.fromkeys(NAMES, None), 0, ENDED, False),
        (dict.fromkeys(NAMES, None), 61, {}, True),
    ],
)
def test_a_planned_stop_is_over_when_no_pod_is_left_and_the_last_lines_are_read(
    pods: Mapping[str, int | None],
    later: float,
    trainings: Mapping[str, SubJobTraining],
    creates: bool,
) -> None:
    decided = plan(ending(pods, later=later, trainings=trainings))
    assert (decided.status.get("stop") is None) == creates
    # A change of the status alone requests no pass: the one that ends the stop must do it.
    assert (decided.requeue_after <= timedelta(milliseconds=1)) == creates


@pytest.mark.parametrize(
    ("left", "applied", "age", "reported", "stops"),
    [
        pytest.param(2, True, 100, 0, True, id="the member shows pods before Karmada reports them"),
        pytest.param(0, True, 1, 2, False, id="the member shows that its pods have ended"),
        pytest.param(None, True, 100, 2, True, id="Karmada reports pods that the member lacks"),
        pytest.param(None, True, 1, 0, True, id="Karmada may still report pods"),
        pytest.param(None, False, 1, 0, False, id="no member has the vcjob"),
        pytest.param(None, True, 100, 0, False, id="it has no pods"),
        pytest.param("off", True, 1, 2, False, id="no member is read: Karmada's report counts"),
    ],
)
def test_a_planned_stop_waits_for_pods_that_run_before_karmada_reports_it(
    left: Any, applied: bool, age: float, reported: int, stops: bool
) -> None:
    seen = world(annotations=ASKED, phase="Pending")
    before = seen.bindings[binding_name(NAMES[0])].report
    report = replace(before, pods=PodCounts(pending=reported))
    job_ = replace(seen.jobs[NAMES[0]], created=NOW - timedelta(seconds=age), report=report)
    bound = replace(
        seen.bindings[binding_name(NAMES[0])],
        applied=applied,
        dispatching_suspended=not applied,
        report=report,
    )
    seen = replace(
        seen,
        jobs={NAMES[0]: job_},
        bindings={bound.name: bound},
        pods_left={} if left == "off" else {NAMES[0]: left, NAMES[1]: 0},
    )
    stop = plan(seen).status.get("stop")
    assert (stop is not None and NAMES[0] in stop["jobs"]) == stops


def test_a_stop_names_the_pods_that_are_left_and_looks_again() -> None:
    decided = plan(ending({NAMES[0]: 0, NAMES[1]: 3}, later=61))
    messages = {each["message"] for each in decided.status["jobs"]}
    what = "waits until all sub-jobs that are stopped have ended"
    assert messages == {f"{what}: 3 of their pods are left"}
    assert decided.requeue_after == timedelta(seconds=10)


def test_a_stop_looks_again_whether_a_member_without_pods_has_shown_a_later_event() -> None:
    decided = plan(ending({NAMES[0]: 0, NAMES[1]: None}))
    assert decided.requeue_after == timedelta(seconds=10)
    assert plan(ending({})).requeue_after == timedelta(seconds=60)


@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "waits"])
@pytest.mark.parametrize(
    ("staying", "seconds", "deletes"),
    [(("east",), 30, True), (("east",), 29, False), ((), 30, False)],
    ids=["nobody deletes its pods", "not for long", "its pods are being deleted"],
)
def test_a_work_that_karmada_has_forgotten_is_deleted(
    suspended: bool, staying: tuple[str, ...], seconds: int, deletes: bool
) -> None:
    seen = world(jobs=False, status={"jobs": records("Restarting", 1)}, checkpoint=None)
    since = rfc3339(NOW - timedelta(seconds=seconds))
    known = {
        n: replace(each, last_transition_time=since) for n, each in seen.hyperjob.records.items()
    }
    raw = replace(seen.hyperjob, records=known, suspend=suspended)
    left, stay = {NAMES[0]: 1, NAMES[1]: 0}, {NAMES[0]: staying} if staying else {}
    decided = plan(replace(seen, hyperjob=raw, pods_left=left, pods_staying=stay))
    found = [each for each in decided.actions if isinstance(each, DeleteWork)]
    assert found == ([DeleteWork(name=NAMES[0], clusters=("east",))] if deletes else [])


def test_no_sub_job_is_created_while_pods_of_its_earlier_attempt_are_left() -> None:
    seen = world(jobs=False, status={"jobs": records("Restarting", 1)}, checkpoint=None)
    decided = plan(replace(seen, pods_left={NAMES[0]: 2, NAMES[1]: 0}))
    assert NAMES[0] not in {each.name for each in decided.actions}
    shown = {each["name"]: each for each in decided.status["jobs"]}
    assert shown[NAMES[0]]["reason"] == "BeingDeleted"
    assert shown[NAMES[0]]["message"] == (
        "waits until the pods of its earlier attempt have ended: 2 left"
    )
    since = rfc3339(NOW - 2 * seen.limits.silence)
    known = {n: replace(r, last_transition_time=since) for n, r in seen.hyperjob.records.items()}
    kept = replace(
        seen,
        hyperjob=replace(seen.hyperjob, records=known),
        pods_left={NAMES[0]: 2, NAMES[1]: 0},
        pods_staying={NAMES[0]: ("east",)},
    )
    told = {each["name"]: each["message"] for each in plan(kept).status["jobs"]}
    assert told[NAMES[0]].endswith(
        "2 left, and east has a vcjob that Karmada does not know: hyperjob after-restore --apply"
        " lets Karmada have it and its pods again"
    )
    free = plan(replace(seen, pods_left=dict.fromkeys(NAMES, 0)))
    assert {each.name for each in free.actions if isinstance(each, CreateChild)} == set(NAMES)


SILENT = {"ended": True, "reported": False}


@pytest.mark.parametrize(
    ("read", "step"),
    [
        pytest.param(None, 90, id="no log"),
        pytest.param(said(0, attempt=1, **SILENT), 90, id="silent, of the same attempt"),
        pytest.param(said(0, attempt=0, **SILENT), 90, id="silent, of an earlier attempt"),
        pytest.param(said(0, attempt=2, **SILENT), None, id="silent, of a later attempt"),
        pytest.param(said(0, attempt=2, reported=False), 90, id="of a later attempt that runs"),
        pytest.param(said(95, attempt=2, ended=True), 95, id="with a line, of a later attempt"),
    ],
)
def test_a_report_counts_until_a_later_attempt_has_ended_without_one(
    read: SubJobTraining | None, step: int | None
) -> None:
    entries = records(attempt=1)
    entries[0]["training"] = table.write(replace(said(90, 80), attempt=1))
    seen = world({} if read is None else {NAMES[0]: read}, status={"jobs": entries})
    found = {name: each.step for name, each in latest_reports(seen).items()}
    assert found == ({} if step is None else {NAMES[0]: step})


def test_of_two_replicated_jobs_with_reports_the_first_counts() -> None:
    entries = records()
    entries[1] |= {"name": "hj-evaluator-0", "replicatedJob": "evaluator", "index": 0}
    seen = world({NAMES[0]: said(9), "hj-evaluator-0": said(99)}, status={"jobs": entries})
    assert {name: each.step for name, each in latest_reports(seen).items()} == {NAMES[0]: 9}
