"""What a failure policy decides, rule by rule."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.lifecycle.decisions import Restart, losses_of
from hyperjob_engine.lifecycle.failures import judge
from hyperjob_engine.lifecycle.records import FIRST, LONGEST, STABLE, delay, retry_time
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.planned import CreateChild, DeleteChild
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.plan import AT_ONCE, plan
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
from tests.unit.engine.plans import wanted

A, B = cluster("a"), cluster("b")
LONG_AGO, JUST_NOW = NOW - timedelta(minutes=6), NOW - timedelta(seconds=20)


def lost(name: str, since: Any = LONG_AGO) -> Cluster:
    return replace(cluster(name, unusable="is not Ready"), not_ready_since=since)


def running(index: int, **options: Any) -> list[Object]:
    return child(index, "Running", **options)


def failed(index: int, phase: str = "Failed", **options: Any) -> list[Object]:
    return child(index, phase, **options)


def rule(action: str, **fields: Any) -> Object:
    return {"action": action, **fields}


def decide(
    rules: Sequence[Object] | None,
    *objects: Object,
    budget: int = 2,
    restarts: int = 0,
    clusters: tuple[Cluster, ...] = (A, B),
    **status: Any,
) -> Object:
    """Give the status that one pass writes."""
    given = {"maxRestarts": budget, **({"rules": list(rules)} if rules is not None else {})}
    raw = hyperjob(failurePolicy=given, status={"restarts": restarts, **status})
    decided = plan(observed(raw, *objects, clusters=clusters))
    if decided.status["state"]["phase"] in ("Restarting", "Failed"):
        assert decided.actions == (), "a decision is written down before anything follows from it"
    if decided.status["state"]["phase"] == "Restarting":
        assert decided.requeue_after == AT_ONCE
    return decided.status


def attempts(status: Object) -> list[int]:
    return [entry.get("attempt", 0) for entry in status["jobs"]]


FAIL, ALL = rule("FailHyperJob"), rule("RestartHyperJob")
ONE, MOVE = rule("RestartJob"), rule("MigrateJob")
FAILS = ("Failed", [0, 0], 0)
ALL_AGAIN = ("Restarting", [1, 1], 1)
ONE_AGAIN = ("Restarting", [0, 1], 1)
ONE_FAILED, BOTH_FAILED = [*running(0), *failed(1)], [*failed(0), *failed(1)]
ONE_ABORTED = [*running(0), *failed(1, "Aborted")]
FAILED_AND_ABORTED = [*failed(0), *failed(1, "Aborted")]
DONE_AND_FAILED = [*child(0, "Completed"), *failed(1)]
ABORTED_FAILS = rule("FailHyperJob", onJobPhases=["Aborted"])
OTHER_FAILS = rule("FailHyperJob", targetReplicatedJobs=["other"])
LOSS_FAILS = rule("FailHyperJob", onClusterLost=True)
UNCOUNTED = rule("RestartJobAndIgnoreMaxRestarts")
ALL_UNCOUNTED = rule("RestartHyperJobAndIgnoreMaxRestarts")
DECISIONS = {
    "nothing failed": ([FAIL], [*running(0), *running(1)], ("Running", [0, 0], 0)),
    "no rule at all restarts everything": (None, ONE_FAILED, ALL_AGAIN),
    "a rule fails it": ([FAIL], ONE_FAILED, FAILS),
    "a rule restarts everything": ([ALL], ONE_FAILED, ALL_AGAIN),
    "a rule restarts one": ([ONE], ONE_FAILED, ONE_AGAIN),
    "a rule moves one": ([MOVE], ONE_FAILED, ONE_AGAIN),
    "the first rule that matches decides": ([ABORTED_FAILS, ONE, FAIL], ONE_FAILED, ONE_AGAIN),
    "a rule for a phase": ([ABORTED_FAILS, ONE], ONE_ABORTED, FAILS),
    "a rule for another group does not match": ([OTHER_FAILS], ONE_FAILED, ALL_AGAIN),
    "a rule for lost clusters answers no failure": ([LOSS_FAILS, ONE], ONE_FAILED, ONE_AGAIN),
    "restarts that are not counted": ([UNCOUNTED], ONE_FAILED, ("Restarting", [0, 1], 0)),
    "all of it, not counted": ([ALL_UNCOUNTED], ONE_FAILED, ("Restarting", [1, 1], 0)),
    "two failures cost two restarts": ([ONE], BOTH_FAILED, ("Restarting", [1, 1], 2)),
    "two failures that restart everything cost one": ([ALL], BOTH_FAILED, ALL_AGAIN),
    "failing wins over restarting": ([ABORTED_FAILS, ALL], FAILED_AND_ABORTED, FAILS),
    "completed sub-jobs run again with all others": ([ALL], DONE_AND_FAILED, ALL_AGAIN),
    "completed sub-jobs stay when one is restarted": ([ONE], DONE_AND_FAILED, ONE_AGAIN),
}


@pytest.mark.parametrize(("rules", "objects", "decided"), DECISIONS.values(), ids=list(DECISIONS))
def test_a_failure_is_answered_by_the_first_rule_that_matches(
    rules: list[Object] | None, objects: list[Object], decided: tuple[str, list[int], int]
) -> None:
    status = decide(rules, *objects)
    assert (status["state"]["phase"], attempts(status), status["restarts"]) == decided


@pytest.mark.parametrize(("action", "spent"), [(ALL, 1), (ONE, 2)], ids=["all", "each"])
def test_what_the_budget_does_not_cover_ends_it_with_the_reason(action: Object, spent: int) -> None:
    enough = decide([action], *failed(0), *failed(1), budget=5, restarts=5 - spent)
    assert enough["state"]["phase"] == "Restarting"
    assert enough["restarts"] == 5
    short = decide([action], *failed(0), *failed(1), budget=5, restarts=6 - spent)
    assert short["state"]["reason"] == "MaxRestartsExceeded"
    assert short["state"]["message"] == "hj-trainer-0 is Failed on a; maxRestarts 5 is used up"
    assert short["conditions"][0]["message"] == short["state"]["message"]
    assert short["restarts"] == 6 - spent


def test_failing_fast_ends_the_others_in_the_record_first_and_then_in_their_members() -> None:
    objects = [*running(0), *failed(1)]
    status = decide([FAIL], *objects)
    assert status["state"]["reason"] == "FailurePolicy"
    assert "failurePolicy.rules[0] fails the HyperJob" in status["state"]["message"]
    assert [entry["phase"] for entry in status["jobs"]] == ["Terminated", "Failed"]
    assert status["jobs"][0]["reason"] == "EndedWithHyperJob"
    after = plan(observed(hyperjob(status=status), *objects, clusters=(A, B)))
    assert after.actions == (
        DeleteChild(name="hj-trainer-0", job_uid="uid-hj-trainer-0", policy_uid="pp-hj-trainer-0"),
    )
    assert after.status == status


def test_a_restart_is_done_by_the_pass_that_reads_it() -> None:
    objects = [*running(0), *failed(1)]
    status = decide([ONE], *objects)
    raw = hyperjob(failurePolicy={"maxRestarts": 2, "rules": [ONE]}, status=status)
    second = plan(observed(raw, *objects, clusters=(A, B)))
    assert [action.name for action in second.actions] == ["hj-trainer-1"]
    assert isinstance(second.actions[0], DeleteChild)
    assert attempts(second.status) == [0, 1]
    third = plan(observed(raw, *running(0), clusters=(A, B)))
    (made,) = third.actions
    assert isinstance(made, CreateChild)
    for document in (made.policy, made.job):
        assert document["metadata"]["labels"]["training.volcano.sh/attempt"] == "1"
        assert document["metadata"]["annotations"]["training.volcano.sh/attempt"] == "1"


def test_a_restart_beside_sub_jobs_enough_to_run_is_told_as_an_event() -> None:
    given = {"maxRestarts": 2, "rules": [ONE]}
    raw = hyperjob(failurePolicy=given, minAvailable=1, status={"state": {"phase": "Running"}})
    decided = plan(observed(raw, *running(0), *failed(1), clusters=(A, B)))
    assert decided.status["state"]["phase"] == "Running"
    (event,) = decided.events
    assert (event.type, event.reason) == ("Warning", "Restarting")
    assert event.note == "Recreates hj-trainer-1: hj-trainer-1 is Failed on a"


def test_what_is_moved_does_not_come_back_while_there_is_another_cluster() -> None:
    first = decide([MOVE], *running(0, on="b"), *failed(1, on="a"))
    assert first["jobs"][1]["excludedClusters"] == ["a"]
    raw = hyperjob(failurePolicy={"maxRestarts": 2, "rules": [MOVE]}, status=first)
    seen = observed(raw, *running(0, on="b"), clusters=(A, cluster("b", 8)))
    (made,) = plan(seen).actions
    assert isinstance(made, CreateChild)
    assert made.cluster == "b"
    back = [*running(0, on="b"), *failed(1, on="b", attempt=1)]
    second = decide([MOVE], *back, **{key: first[key] for key in ("jobs", "state")}, restarts=1)
    assert second["jobs"][1]["excludedClusters"] == ["b"], "a may be tried again: nothing is left"


LOSSES = {
    "lost for long": (lost("a"), "Restarting"),
    "not Ready for a moment": (lost("a", JUST_NOW), "Running"),
    "Ready": (A, "Running"),
    "never Ready, of which nothing was heard": (lost("a", None), "Running"),
    "gone": (cluster("c"), "Restarting"),
}


@pytest.mark.parametrize(("where", "phase"), LOSSES.values(), ids=list(LOSSES))
def test_a_cluster_counts_as_lost_after_a_time(where: Cluster, phase: str) -> None:
    rules = [rule("MigrateJob", onClusterLost=True), FAIL]
    status = decide(rules, *running(0, on="b"), *running(1, on="a"), clusters=(where, B))
    assert status["state"]["phase"] == phase
    assert attempts(status) == ([0, 1] if phase == "Restarting" else [0, 0])


def test_the_limit_of_a_cluster_that_is_not_ready_is_told_and_waited_for() -> None:
    raw = hyperjob(failurePolicy={"maxRestarts": 1})
    objects = [*running(0, on="b"), *running(1, on="a")]
    decided = plan(observed(raw, *objects, clusters=(lost("a", JUST_NOW), B)))
    assert decided.requeue_after == timedelta(minutes=5) - timedelta(seconds=20)
    both = plan(observed(raw, *objects, clusters=(lost("a", JUST_NOW), lost("b", NOW))))
    assert both.requeue_after == decided.requeue_after
    entry = decided.status["jobs"][1]
    assert entry["reason"] == "ClusterNotReady"
    assert entry["message"] == (
        f"cluster a is not Ready since {rfc3339(JUST_NOW)}, counts as lost from"
        f" {rfc3339(JUST_NOW + timedelta(minutes=5))} on"
    )


def test_a_running_hyperjob_says_at_once_that_a_cluster_of_it_is_not_ready() -> None:
    clusters = (lost("a", JUST_NOW), B)
    status = decide([FAIL], *running(0, on="b"), *running(1, on="a"), clusters=clusters)
    assert (status["state"]["phase"], status["state"]["reason"]) == ("Running", "ClusterNotReady")
    assert status["state"]["message"].startswith(
        "2 of 2 sub-jobs run or completed, on a, b, as last reported; hj-trainer-1 is Running on a:"
        f" cluster a is not Ready since {rfc3339(JUST_NOW)}, counts as lost from"
    )
    back = decide([FAIL], *running(0, on="b"), *running(1, on="a"), clusters=(cluster("a"), B))
    assert back["state"]["reason"] == "JobsRunning"


def test_what_has_ended_is_not_lost_with_its_cluster() -> None:
    status = decide([FAIL], *child(0, "Completed"), *running(1, on="b"), clusters=(lost("a"), B))
    assert status["state"]["phase"] == "Running"


def test_without_a_policy_a_loss_is_shown_and_nothing_is_moved() -> None:
    raw = hyperjob(status={"state": {"phase": "Running"}})
    objects = [*running(0, on="b"), *running(1, on="a")]
    decided = plan(observed(raw, *objects, clusters=(lost("a"), B)))
    assert decided.actions == ()
    assert decided.status["state"]["phase"] == "Degraded"
    assert decided.status["jobs"][1]["reason"] == "ClusterLost"
    back = plan(observed(raw, *objects, clusters=(A, B)))
    assert back.status["state"]["phase"] == "Running"


def test_waits_grow_and_are_bounded_and_an_attempt_that_lasted_starts_them_anew() -> None:
    waits = [delay(attempt, timedelta(seconds=1)) for attempt in range(1, 40)]
    assert waits[:4] == [timedelta(), FIRST, FIRST * 2, FIRST * 4]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST
    assert delay(20, STABLE) == timedelta()
    assert delay(20, None) == LONGEST
    assert retry_time(2, now=NOW, began=None) == NOW + FIRST


def test_what_is_restarted_with_a_failed_sub_job_waits_as_long_as_that_one() -> None:
    before = [job_status(index, attempt=1) for index in range(2)]
    objects = [*running(0, attempt=1), *failed(1, attempt=1)]
    again = decide([ALL], *objects, jobs=before)["jobs"]
    assert [each["retryTime"] for each in again] == [rfc3339(NOW + FIRST)] * 2


def test_nothing_is_made_before_its_time_and_the_status_says_when() -> None:
    due = NOW + timedelta(seconds=10)
    entry = job_status(
        1,
        phase="Unplaced",
        reason="Restarting",
        message="hj-trainer-1 is Failed on a",
        attempt=2,
        retryTime=rfc3339(due),
    )
    raw = hyperjob(failurePolicy={"maxRestarts": 3}, status={"jobs": [entry], "restarts": 2})
    waiting = plan(observed(raw, *running(0), clusters=(A, B)))
    assert waiting.actions == ()
    assert waiting.requeue_after == timedelta(seconds=10)
    assert waiting.status["state"]["phase"] == "Restarting"
    told = waiting.status["jobs"][1]
    assert told["message"] == "hj-trainer-1 is Failed on a"
    assert told["retryTime"] == rfc3339(due)
    again = hyperjob(failurePolicy={"maxRestarts": 3}, status=waiting.status)
    assert plan(observed(again, *running(0), clusters=(A, B))).status == waiting.status
    later = plan(observed(again, *running(0), clusters=(A, B), now=due))
    assert [type(action) for action in later.actions] == [CreateChild]


def test_a_failure_and_a_loss_are_told_apart_and_only_a_move_leaves_its_cluster() -> None:
    failed_one = decide([ONE], *running(0, on="b"), *failed(1))["jobs"][1]
    assert failed_one["history"][0]["reason"] == "JobFailed"
    assert "excludedClusters" not in failed_one
    assert decide([MOVE], *running(0, on="b"), *failed(1))["jobs"][1]["excludedClusters"] == ["a"]
    rules = [rule("RestartJob", onClusterLost=True)]
    lost_one = decide(rules, *running(0, on="b"), *running(1), clusters=(lost("a"), B))["jobs"][1]
    assert lost_one["history"][0]["reason"] == "ClusterLost"


@pytest.mark.parametrize(("restarted", "wait"), [(True, 10), (False, 0)])
def test_a_sub_job_began_at_its_last_restart_and_else_with_its_hyperjob(
    restarted: bool, wait: int
) -> None:
    """The HyperJob began so long ago that an attempt of that time was no crash."""
    entry = job_status(0, phase="Running")
    retried = {"retryTime": rfc3339(NOW - timedelta(seconds=1))} if restarted else {}
    raw = hyperjob(
        group(replicas=1),
        failurePolicy={"maxRestarts": 9},
        status={
            "jobs": [{**entry, "attempt": 1, **retried}],
            "restarts": 1,
            "startTime": rfc3339(NOW - STABLE),
        },
    )
    decided = plan(observed(raw, *failed(0, attempt=1), clusters=(A, B)))
    (told,) = decided.status["jobs"]
    assert told["attempt"] == 2
    assert told["retryTime"] == rfc3339(NOW + timedelta(seconds=wait))


@pytest.mark.parametrize(
    ("ends", "order"),
    [
        pytest.param({0: "03:00:30", 1: "03:00:10", 2: "03:00:20"}, [1, 2, 0], id="by time"),
        pytest.param({2: "03:00:10", 1: "03:00:10", 0: "03:00:10"}, [0, 1, 2], id="then by name"),
        pytest.param({0: "?", 1: "03:00:10", 2: "?"}, [1, 0, 2], id="without a time last"),
        pytest.param({1: "03:03:30", 2: "03:00:05"}, [2, 0, 1], id="a loss by its time"),
    ],
)
def test_the_earliest_failure_comes_first(ends: dict[int, str], order: list[int]) -> None:
    """A sub-job without an end is lost with its cluster at 03:03:05."""
    raw = hyperjob(group(replicas=3), failurePolicy={"maxRestarts": 9, "rules": [ONE]})
    made = [
        each
        for index in range(3)
        for each in (
            failed(index, since=f"2026-01-02T{ends[index]}Z")
            if index in ends
            else running(index, on="b")
        )
    ]
    seen = observed(raw, *made, clusters=(A, lost("b")))
    members = [(each, child_of(seen, each.name)) for each in wanted(seen.hyperjob)]
    decided = judge(seen, members[::-1], losses_of(seen, members))
    assert isinstance(decided, Restart)
    assert [each.name for each in decided.again] == [f"hj-trainer-{index}" for index in order]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"message": "pod worker-0 exited with 137", "reason": "PodFailed"}, "137"),
        ({"reason": "PodFailed"}, "PodFailed"),
    ],
)
def test_a_failure_is_told_in_the_words_of_volcano(state: Object, told: str) -> None:
    reported = {"state": {"phase": "Failed", **state}}
    status = decide(None, *child(0, status=reported), *child(1, "Running"), budget=0)
    assert status["state"]["phase"] == "Failed"
    assert told in status["state"]["message"]
