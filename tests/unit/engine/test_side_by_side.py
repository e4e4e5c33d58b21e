"""Sub-jobs in different states side by side, states that last, and the moment before a limit."""

from datetime import datetime, timedelta

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.planned import AskAgain, CreateChild, Plan
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
    task,
    template,
    vcjob_status,
)

A, B = cluster("a"), cluster("b")
LIMIT = timedelta(seconds=30)


def child(name: str, phase: str = "", *, where: str = "a") -> list[Object]:
    return [
        job(name, phase=phase),
        policy(name, cluster=where),
        binding(name, cluster=where, status=vcjob_status(phase) if phase else None),
    ]


def state_of(decided: Plan) -> tuple[str, str]:
    state = decided.status["state"]
    return state["phase"], state["reason"]


# A HyperJob that was Degraded stays Degraded until minAvailable sub-jobs run


@pytest.mark.parametrize(
    ("previous", "phase"), [("Running", "Degraded"), ("Degraded", "Degraded"), ("", "Starting")]
)
def test_degraded_lasts_until_enough_sub_jobs_run_again(previous: str, phase: str) -> None:
    raw = hyperjob(status={"state": {"phase": previous}} if previous else {})
    objects = [*child("hj-trainer-0", "Running"), *child("hj-trainer-1", "Pending")]
    first = plan(observed(raw, *objects, clusters=(A,)))
    assert state_of(first)[0] == phase
    second = plan(observed(hyperjob(status=first.status), *objects, clusters=(A,)))
    assert state_of(second)[0] == phase
    whole = [*child("hj-trainer-0", "Running"), *child("hj-trainer-1", "Running")]
    third = plan(observed(hyperjob(status=second.status), *whole, clusters=(A,)))
    assert state_of(third)[0] == "Running"


# Dependencies


@pytest.mark.parametrize(
    ("data", "model", "phase"),
    [
        ("Failed", "Completed", "Failed"),
        ("Completed", "Failed", "Failed"),
        ("Failed", "Failed", "Failed"),
        ("Completed", "Completed", "Starting"),
    ],
)
def test_one_failed_dependency_of_two_fails_the_hyperjob(data: str, model: str, phase: str) -> None:
    """Without a failurePolicy a replicatedJob can never start once any dependency has failed."""
    after = [{"name": "data", "status": "Complete"}, {"name": "model", "status": "Complete"}]
    raw = hyperjob(
        group("data", replicas=1),
        group("model", replicas=1),
        group("trainer", replicas=1, dependsOn=after),
    )
    objects = [*child("hj-data-0", data), *child("hj-model-0", model)]
    decided = plan(observed(raw, *objects, clusters=(A,)))
    made = [item.name for item in decided.actions if isinstance(item, CreateChild)]
    if phase == "Failed":
        assert (state_of(decided)[0], made) == ("Failed", [])
    else:
        assert made == ["hj-trainer-0"]


# Karmada's refusals


@pytest.mark.parametrize(("seconds", "moves"), [(9, False), (10, True), (11, True)])
def test_a_refusal_counts_after_ten_seconds(seconds: int, moves: bool) -> None:
    since = rfc3339(NOW - timedelta(seconds=seconds))
    record = job_status()
    raw = hyperjob(
        group(replicas=1),
        status={"jobs": [{**record, "rejections": [{"cluster": "a", "since": since}]}]},
    )
    refused = binding(unscheduled=("NoClusterFit", "0/2 clusters are available"))
    refused["spec"]["placement"] = policy(cluster="a")["spec"]["placement"]
    decided = plan(observed(raw, job(), policy(), refused, clusters=(A, B)))
    assert bool(decided.actions) is moves
    if not moves:
        assert decided.requeue_after == timedelta(seconds=10 - seconds)


# Silence


def silent(name: str, since: datetime) -> list[Object]:
    bound = binding(name, cluster="a", status={})
    bound["status"]["conditions"] = [
        {"type": "FullyApplied", "status": "True", "lastTransitionTime": rfc3339(since)}
    ]
    return [job(name), policy(name), bound]


@pytest.mark.parametrize(("old", "asked"), [(3, 3), (4, 0)])
def test_sub_jobs_applied_a_moment_ago_do_not_count_as_silent(old: int, asked: int) -> None:
    """More than three silent sub-jobs mean that Karmada is behind; a fresh one is not silent."""
    names = [f"hj-trainer-{index}" for index in range(6)]
    objects = [
        item
        for index, name in enumerate(names)
        for item in silent(name, NOW if index >= old else NOW - 2 * LIMIT)
    ]
    raw = hyperjob(group(replicas=len(names)))
    decided = plan(observed(raw, *objects, clusters=(A,), now=NOW + LIMIT / 2))
    assert len([item for item in decided.actions if isinstance(item, AskAgain)]) == asked


# Automatic splits


@pytest.mark.parametrize("leaving", [0, 1])
def test_an_automatic_split_is_not_decided_while_any_sub_job_of_it_is_deleted(leaving: int) -> None:
    split = {"mode": "auto", "accelerators": 128, "acceleratorType": GPU}
    spec = template(task(replicas=4, gpus=1))
    recorded = [
        job_status(index, accelerators=size, cluster=where)
        for index, (size, where) in enumerate([(68, "a"), (60, "b")])
    ]
    raw = hyperjob(
        group(replicas=1, splitPolicy=split, templateSpec=spec), status={"jobs": recorded}
    )
    name = f"hj-trainer-{leaving}"
    objects = [job(name, gpus=60, deleting=True), policy(name)]
    more_room = (cluster("a", 128), cluster("b", 128))
    decided = plan(observed(raw, *objects, clusters=more_room))
    assert not [item for item in decided.actions if isinstance(item, CreateChild)]
    assert [each["accelerators"] for each in decided.status["jobs"]] == [68, 60]


# Clusters in the status


def test_a_sub_job_that_is_being_deleted_counts_for_no_cluster() -> None:
    leaving = [job("hj-trainer-1", deleting=True), policy("hj-trainer-1", cluster="b")]
    decided = plan(
        observed(hyperjob(), *child("hj-trainer-0", "Running"), *leaving, clusters=(A, B))
    )
    assert decided.status["jobs"][1]["phase"] == "Unplaced"
    assert decided.status["jobs"][1]["cluster"] == "b"
    assert [each["name"] for each in decided.status["clusters"]] == ["a"]
    assert decided.status["clusterNames"] == "a"


# Words of a failure


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"message": "pod worker-0 exited with 137", "reason": "PodFailed"}, "137"),
        ({"reason": "PodFailed"}, "PodFailed"),
    ],
)
def test_a_failure_is_told_in_the_words_of_volcano(state: Object, told: str) -> None:
    failed = job("hj-trainer-0", phase="Failed")
    failed["status"]["state"] |= state
    raw = hyperjob(group(replicas=1), failurePolicy={"maxRestarts": 0})
    decided = plan(observed(raw, failed, policy(), clusters=(A,)))
    assert decided.status["state"]["phase"] == "Failed"
    assert told in decided.status["state"]["message"]
