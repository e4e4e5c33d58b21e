"""What Karmada could not schedule is learnt from."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hyperjob_core.api.status import JobStatus, Rejection
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.gang.gang import check_rejection
from hyperjob_engine.model.planned import Plan, Repin
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.plan import plan
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
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
    vcjob_status,
)

A, B, SMALL = cluster("a"), cluster("b"), cluster("b", 7)


def refused(*, pin: str = "a", read: str = "a", reason: str = "NoClusterFit") -> list[Object]:
    found = binding(unscheduled=(reason, "0/2 clusters are available: 2 no room."))
    found["spec"]["placement"] = policy(cluster=read)["spec"]["placement"]
    return [job(), policy(cluster=pin), found]


def look(
    *objects: Object,
    rejections: list[Object] | None = None,
    now: datetime = NOW,
    clusters: object = (A, B),
) -> Plan:
    record: Object = job_status()
    if rejections:
        record["rejections"] = rejections
    raw = hyperjob(group(replicas=1), status={"jobs": [record]})
    return plan(observed(raw, *objects, clusters=clusters, now=now))  # type: ignore[arg-type]


def rejections(decided: Plan) -> list[Object]:
    assert_status(decided.status)
    found: list[Object] = decided.status["jobs"][0].get("rejections", [])
    return found


@pytest.mark.parametrize("reason", ["NoClusterFit", "Unschedulable", "SchedulerError"])
def test_a_refusal_must_stand_before_it_counts(reason: str) -> None:
    decided = look(*refused(reason=reason))
    assert decided.actions == ()
    assert rejections(decided) == [{"cluster": "a", "since": rfc3339(NOW)}]
    assert decided.requeue_after == timedelta(seconds=10)


def test_then_the_cluster_is_left_out_and_the_sub_job_moves() -> None:
    since = [{"cluster": "a", "since": rfc3339(NOW - timedelta(seconds=10))}]
    decided = look(*refused(), rejections=since)
    (move,) = decided.actions
    assert isinstance(move, Repin)
    assert move.cluster == "b"
    until = rfc3339(NOW + timedelta(minutes=1))
    assert rejections(decided) == [{"cluster": "a", "times": 1, "retryTime": until}]
    assert decided.status["jobs"][0]["message"].endswith(
        "; Karmada could not schedule it on a, left out until 03:05:05Z"
    )
    assert [(event.reason, event.note) for event in decided.events if event.type == "Warning"] == [
        (
            "Unschedulable",
            "Karmada could not schedule hj-trainer-0 on a: left out until 2026-01-02T03:05:05Z",
        )
    ]


def test_a_refusal_of_an_earlier_pin_is_not_this_ones() -> None:
    """The policy says b; the binding that is read still says a."""
    left_out = [{"cluster": "a", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    decided = look(*refused(pin="b"), rejections=left_out)
    assert decided.actions == ()
    assert rejections(decided) == left_out


def test_it_is_not_put_back_before_the_time_has_come() -> None:
    left_out = [{"cluster": "a", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    full = look(*refused(), rejections=left_out, clusters=(A, SMALL))
    assert full.actions == ()
    assert full.requeue_after == timedelta(minutes=1)
    assert full.waits_for_capacity
    freed = look(*refused(), rejections=left_out, clusters=(A, B))
    assert [type(action) for action in freed.actions] == [Repin]


@pytest.mark.parametrize(("times", "minutes"), [(0, 1), (1, 2), (3, 8), (20, 60)])
def test_each_further_refusal_counts_longer_up_to_a_limit(times: int, minutes: int) -> None:
    since = [{"cluster": "a", "times": times, "since": rfc3339(NOW - timedelta(seconds=10))}]
    until = rfc3339(NOW + timedelta(minutes=minutes))
    found = rejections(look(*refused(), rejections=since))
    assert found == [{"cluster": "a", "times": times + 1, "retryTime": until}]


def test_after_the_time_the_cluster_is_tried_again_and_the_number_is_kept() -> None:
    over = [{"cluster": "a", "times": 2, "retryTime": rfc3339(NOW)}]
    decided = look(*refused(), rejections=over)
    assert decided.actions == ()
    assert rejections(decided) == [{"cluster": "a", "times": 2, "since": rfc3339(NOW)}]


def test_a_refusal_that_passes_by_itself_is_forgotten() -> None:
    since = [{"cluster": "a", "since": rfc3339(NOW)}]
    decided = look(job(), policy(), binding(cluster="a"), rejections=since)
    assert rejections(decided) == []


def test_a_sub_job_that_started_forgets_all() -> None:
    left_out = [{"cluster": "b", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    running = binding(cluster="a", status=vcjob_status("Running", {"running": 8}))
    assert rejections(look(job(), policy(), running, rejections=left_out)) == []


def test_what_is_made_again_is_not_made_where_it_was_refused() -> None:
    left_out = [{"cluster": "a", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    decided = look(rejections=left_out)
    assert [getattr(action, "cluster", "") for action in decided.actions] == ["b"]
    waits = look(rejections=left_out, clusters=(A,))
    assert waits.actions == ()
    assert waits.requeue_after == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (
            'Failed: admission webhook "job.volcano.sh" denied the request: queue q is closed',
            "RefusedByCluster",
            "cluster a refuses it: admission webhook job.volcano.sh says: queue q is closed",
        ),
        ("connection refused", "ApplyFailed", "connection refused"),
    ],
)
def test_why_a_member_does_not_take_a_vcjob(error: str, reason: str, message: str) -> None:
    decided = look(job(), policy(), binding(cluster="a", apply_error=error))
    told = decided.status["jobs"][0]
    assert (told["reason"], told["message"]) == (reason, message)
    assert [event.reason for event in decided.events if event.type == "Warning"] == [reason]


def test_a_cluster_that_karmada_schedules_on_after_all_is_no_longer_left_out() -> None:
    earlier = Rejection(cluster="a", times=3, retry_time=NOW + timedelta(minutes=5))
    record = JobStatus(
        name="hj-trainer-0", replicated_job="trainer", index=0, rejections=(earlier,)
    )
    seen = observed(hyperjob(), job(), policy(), binding(cluster="a"), clusters=(A, B))
    child = replace(child_of(seen, "hj-trainer-0"), record=record)
    assert check_rejection(child, now=NOW).rejections == ()
    elsewhere = replace(child, record=replace(record, rejections=(replace(earlier, cluster="b"),)))
    assert [item.cluster for item in check_rejection(elsewhere, now=NOW).rejections] == ["b"]
