from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_core.api.wire import condition
from hyperjob_engine.model.observed import Cluster, QueueAdmission, Refusal
from hyperjob_engine.model.planned import DeleteChild, Plan, Repin
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import ClusterTrouble, Trouble
from hyperjob_engine.status.transitions import action_events
from hyperjob_engine.steps.requeue import CONFLICT_RECHECK
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    child,
    cluster,
    ends,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    owner,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.plans import GLOBAL, A, B, creations, decide, kinds, message, phase

SINGLE = hyperjob(group(replicas=1))


def finished(kind: str = "Completed", **state: str) -> Object:
    condition = {
        "type": kind,
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
    jobs = [job_status(i, phase=kind) for i in range(2)]
    return {"conditions": [condition], "observedGeneration": 1, "state": state, "jobs": jobs}


def test_a_hyperjob_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    raw = hyperjob(deletionTimestamp="2026-01-02T03:04:00Z")
    assert decide(raw) == Plan()


@pytest.mark.parametrize("kind", ["Completed", "Failed"])
def test_an_ended_hyperjob_is_never_run_again(kind: str) -> None:
    """Not after its children are gone, and not after its spec was edited."""
    status = finished(kind, phase=kind)
    raw = hyperjob(group(replicas=5), status=status, generation=4)
    decided = decide(raw)
    assert decided.actions == ()
    assert decided.status == status | {"observedGeneration": 4}
    assert decided.events == ()


@pytest.mark.parametrize("kind", ["Completed", "Failed"])
def test_a_hyperjob_that_ended_under_the_go_controller_shows_its_end(kind: str) -> None:
    condition = {
        "type": kind,
        "status": "True",
        "reason": "AllChildVCJobsCompleted",
        "message": "All 1 child vcJobs completed",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
    status = {"conditions": [condition], "splitCount": 1, "observedGeneration": 1}
    decided = plan(observed(hyperjob(status=status), job(phase="Completed"), policy()))
    assert decided.actions == ()
    assert decided.events == ()
    assert decided.status == status | {
        "completionTime": "2026-01-02T03:00:00Z",
        "state": {
            "phase": kind,
            "reason": "AllChildVCJobsCompleted",
            "message": "All 1 child vcJobs completed",
            "lastTransitionTime": "2026-01-02T03:00:00Z",
        },
    }
    again = plan(observed(hyperjob(status=decided.status), job(phase="Completed"), policy()))
    assert again.status == decided.status, "the second pass writes nothing"


def test_what_is_resumed_by_hand_after_the_end_is_taken_back() -> None:
    status = finished("Failed", phase="Failed", reason="JobsAborted")
    for entry in status["jobs"]:
        entry["phase"] = "Aborted"
    stopped = [job("hj-trainer-0", phase="Aborted"), job("hj-trainer-1", phase="Aborted")]
    assert plan(observed(hyperjob(status=status), *stopped, policy())).actions == ()
    resumed = [*child(0, "Running"), *child(1, "Running")]
    decided = plan(observed(hyperjob(status=status), *resumed))
    assert kinds(decided) == [("DeleteChild", "hj-trainer-0"), ("DeleteChild", "hj-trainer-1")]
    assert decided.status == status


WRONG = group(
    splitPolicy={"mode": "static", "accelerators": 3, "acceleratorType": GPU},
    templateSpec=template(task(gpus=2)),
)


def test_a_spec_that_cannot_be_carried_out_is_told_and_nothing_is_touched() -> None:
    decided = decide(hyperjob(WRONG), job())
    assert decided.actions == ()
    assert phase(decided) == ("Pending", "InvalidSpec")
    assert "whole number of pods" in message(decided)
    assert [event.reason for event in decided.events] == ["InvalidSpec"]


def test_a_spec_that_cannot_be_carried_out_is_expected_to_start_at_no_time() -> None:
    start = {"time": "2026-01-02T05:04:00Z", "after": "ns/run"}
    old = decide(hyperjob(WRONG, status={"expectedStart": start})).status
    new = decide(hyperjob(WRONG)).status
    assert old["expectedStart"] is None
    assert "expectedStart" not in new


def test_a_policy_comes_with_every_vcjob_and_before_it() -> None:
    decided = decide(hyperjob(), clusters=(A, B))
    assert kinds(decided) == [("CreateChild", "hj-trainer-0"), ("CreateChild", "hj-trainer-1")]
    for action in creations(decided).values():
        assert action.job is not None
        pinned = action.policy["spec"]["placement"]["clusterAffinities"][0]["clusterNames"]
        assert pinned == [action.cluster]
        assert "suspension" not in action.policy["spec"]
    assert {item.cluster for item in creations(decided).values()} == {"a", "b"}


def test_nothing_of_a_gang_is_made_until_all_of_it_has_room() -> None:
    decided = decide(hyperjob(), clusters=(cluster("a", 8), cluster("b", 7)))
    assert decided.actions == ()
    assert decided.waits_for_capacity
    assert phase(decided) == ("Pending", "ExceedsClusters")
    assert message(decided) == (
        "2 sub-jobs must be placed together, there is room for 1 and too little even on empty"
        " clusters: hj-trainer-1 needs 8 nvidia.com/gpu: a lacks 8 nvidia.com/gpu (0 free);"
        " b lacks 1 nvidia.com/gpu (has 7)"
    )


@pytest.mark.parametrize("admission", [QueueAdmission.NONE, GLOBAL])
def test_a_cluster_that_does_not_exist_is_the_reason_whoever_admits(
    admission: QueueAdmission,
) -> None:
    """As after `kubectl delete cluster`: it is no lack of room."""
    named = group(replicas=1, clusterNames=["gone", "c"], clusterPolicy="Required")
    why = Trouble(ClusterTrouble.TAINTED, "ops:NoExecute")
    tainted = replace(cluster("c", unusable="Tainted"), trouble=why)
    decided = decide(hyperjob(named), clusters=(A, tainted), admission=admission)
    assert phase(decided) == ("Pending", "NoMatchingNode")
    assert (
        message(decided)
        == "hj-trainer-0 cluster gone does not exist; cluster c has taint ops:NoExecute"
    )


def test_beyond_min_available_sub_jobs_are_made_as_capacity_allows() -> None:
    raw = hyperjob(group(replicas=3), minAvailable=2)
    decided = decide(raw, clusters=(cluster("a", 8), cluster("b", 8)))
    assert len(creations(decided)) == 2
    assert decided.waits_for_capacity
    more = [*child(0, "Running"), *child(1, "Running")]
    decided = decide(raw, *more, clusters=(cluster("a", 0), cluster("b", 8)))
    assert kinds(decided) == [("CreateChild", "hj-trainer-2")]
    assert phase(decided)[0] == "Running"


def test_waiting_for_capacity_looks_again_when_a_reservation_ends() -> None:
    wait = timedelta(seconds=12)
    decided = decide(hyperjob(), clusters=(), capacity_changes_in=wait)
    assert decided.requeue_after == wait
    assert decide(hyperjob(), capacity_changes_in=wait).requeue_after is None


def test_a_lost_vcjob_is_made_again_where_there_is_room_now() -> None:
    records = [job_status(0, phase="Running", cluster="a")]
    raw = hyperjob(group(replicas=1), status={"jobs": records})
    decided = decide(raw, policy(), clusters=(cluster("a", 0), B))
    assert kinds(decided) == [("Repin", "hj-trainer-0"), ("CreateChild", "hj-trainer-0")]
    repin = decided.actions[0]
    assert isinstance(repin, Repin)
    assert repin.placement["clusterAffinities"][0]["clusterNames"] == ["b"]
    assert creations(decided)["hj-trainer-0"].policy is None


def test_the_policy_of_a_running_sub_job_is_made_again_for_its_own_cluster() -> None:
    raw = SINGLE
    running = binding(cluster="b", status=vcjob_status("Running", {"running": 8}))
    for admission in QueueAdmission:
        decided = decide(raw, job(), running, clusters=(A, B), admission=admission)
        action = creations(decided)["hj-trainer-0"]
        assert action.job is None
        assert action.cluster == "b"
        assert "suspension" not in action.policy["spec"]


def test_while_old_objects_are_on_their_way_out_nothing_new_is_made() -> None:
    raw = SINGLE
    for leaving in (job(deleting=True), policy(deleting=True)):
        decided = decide(raw, leaving)
        assert decided.actions == ()
        assert phase(decided) == ("Pending", "BeingDeleted")


def test_a_strangers_name_is_reported_and_looked_at_again_later() -> None:
    decided = decide(SINGLE, job(owners=owner("x", "y")))
    assert decided.actions == ()
    assert phase(decided) == ("Pending", "NameConflict")
    assert "controlled by HyperJob y" in message(decided)
    assert decided.requeue_after == CONFLICT_RECHECK
    assert [(event.type, event.reason) for event in decided.events] == [("Warning", "NameConflict")]


def test_children_of_the_go_controller_are_taken_as_they_are() -> None:
    """Same names, labels and owner; its policy pins nothing, its vcjob has a hash label."""
    theirs = job(phase="Running")
    theirs["metadata"]["labels"]["volcano.sh/vcjob-template-spec-hash"] = "cv77bf949ww2v45z"
    pp = policy()
    pp["spec"]["placement"] = {"spreadConstraints": [{"spreadByField": "cluster"}]}
    where = binding(cluster="b", status=vcjob_status("Running", {"running": 8}))
    decided = decide(SINGLE, theirs, pp, where, clusters=(A, B))
    assert decided.actions == ()
    assert decided.status["clusterNames"] == "b"


def test_a_refused_sub_job_waits_and_the_others_go_on() -> None:
    refusal = Refusal(reason="Invalid", message="no queue", retry_at=NOW + timedelta(seconds=20))
    raw = hyperjob(minAvailable=1)
    decided = decide(raw, refusals={"hj-trainer-0": refusal})
    assert kinds(decided) == [("CreateChild", "hj-trainer-1")]
    assert decided.requeue_after == timedelta(seconds=20)
    entry = decided.status["jobs"][0]
    assert (entry["reason"], entry["message"]) == ("Refused", "Invalid: no queue")
    later = observed(raw, clusters=(A,), refusals={"hj-trainer-0": refusal}, now=refusal.retry_at)
    assert len(creations(plan(later))) == 2


def test_a_refusal_of_a_sub_job_that_the_spec_no_longer_has_asks_for_no_look() -> None:
    refusal = Refusal(reason="Invalid", message="no queue", retry_at=NOW + timedelta(seconds=20))
    made = job(phase="Running"), policy(), binding(cluster="a", status=vcjob_status("Running"))
    raw = SINGLE
    quiet = decide(raw, *made)
    decided = decide(raw, *made, refusals={"hj-trainer-7": refusal})
    assert decided.requeue_after == quiet.requeue_after


def test_scaling_down_deletes_by_uid_vcjob_and_policy() -> None:
    objects = [*child(0, "Running"), *child(1, "Running")]
    decided = plan(observed(SINGLE, *objects))
    assert decided.actions == (
        DeleteChild(name="hj-trainer-1", job_uid="uid-hj-trainer-1", policy_uid="pp-hj-trainer-1"),
    )
    assert [entry["name"] for entry in decided.status["jobs"]] == ["hj-trainer-0"]


def test_the_sub_jobs_of_a_removed_replicated_job_go() -> None:
    gone = job(
        "hj-old-0",
        phase="Running",
        marked={"volcano.sh/hyperjob-name": "hj", "volcano.sh/replicatedjob-name": "old"},
    )
    stranger = job("hj-old-1", owners=owner("x"))
    decided = decide(SINGLE, gone, stranger)
    assert kinds(decided) == [("CreateChild", "hj-trainer-0"), ("DeleteChild", "hj-old-0")]


def test_scaling_down_to_what_has_completed_does_not_end_with_what_still_runs() -> None:
    objects = [job(f"hj-trainer-{i}", phase="Completed") for i in range(2)]
    running = [job("hj-trainer-2", phase="Running"), policy("hj-trainer-2")]
    decided = plan(observed(hyperjob(), *objects, *running))
    assert kinds(decided) == [("DeleteChild", "hj-trainer-1")]
    assert not ends(decided.status)


def test_a_sub_job_that_lost_its_policy_before_it_was_placed_is_placed_anew() -> None:
    """Nothing keeps it where the status says, so its place may have been given away."""
    records = [job_status(0, phase="Placed", cluster="a")]
    raw = hyperjob(group(replicas=1), status={"jobs": records})
    decided = decide(raw, job(), clusters=(cluster("a", 7), B))
    action = creations(decided)["hj-trainer-0"]
    assert (action.cluster, action.job) == ("b", None)
    nowhere = decide(raw, job(), clusters=(cluster("a", 7),))
    assert nowhere.actions == ()
    assert phase(nowhere)[1] == "InsufficientCapacity"


def test_children_of_an_earlier_hyperjob_of_this_name_are_waited_for() -> None:
    decided = decide(SINGLE, job(owners=owner("older")))
    assert decided.actions == ()
    assert phase(decided) == ("Pending", "BeingDeleted")
    assert [event.type for event in decided.events] == ["Normal"]


@pytest.mark.parametrize("clusters", [(cluster("a", unusable="is not Ready"), B), (B,)])
@pytest.mark.parametrize("where", ["", "a"])
def test_a_sub_job_that_never_started_leaves_a_cluster_that_is_lost(
    clusters: tuple[Cluster, ...], where: str
) -> None:
    stuck = [job(), policy(cluster="a"), binding(cluster=where)]
    decided = decide(SINGLE, *stuck, clusters=clusters)
    (move,) = decided.actions
    assert isinstance(move, Repin)
    assert move.placement["clusterAffinities"][0]["clusterNames"] == ["b"]


def test_a_lost_cluster_is_not_left_for_one_without_room() -> None:
    lost = cluster("a", unusable="is not Ready")
    seen = observed(SINGLE, job(), policy(), binding(), clusters=(lost, cluster("b", 7)))
    assert plan(seen).actions == ()


def test_an_overflow_is_told() -> None:
    raw = hyperjob(group(replicas=1, clusterNames=["a", "typo"]))
    decided = decide(raw, clusters=(cluster("a", 7), B))
    events = action_events(decided.actions)
    assert [(event.reason, event.note) for event in events][1:] == [
        (
            "Overflowed",
            "hj-trainer-0 is on b: a lacks 1 nvidia.com/gpu (has 7); typo does not exist",
        )
    ]


def test_a_spec_gone_wrong_does_not_make_a_running_hyperjob_pending() -> None:
    split = {"mode": "auto", "accelerators": 3, "acceleratorType": "no/such"}
    raw = hyperjob(group(splitPolicy=split), status={"state": {"phase": "Running"}})
    assert phase(plan(observed(raw, job(phase="Running")))) == ("Running", "InvalidSpec")
    was = decide(hyperjob(), *child(phase="Running"), *child(1, phase="Pending")).status
    starts = decide(hyperjob(group(splitPolicy=split), status=was))
    assert phase(starts) == ("Starting", "InvalidSpec")
    assert condition(starts.status, "Admitted")["status"] == "True", "as before"


@pytest.mark.parametrize("still", ["Running", "Completed"])
def test_an_end_that_leaves_something_to_remove_is_followed_by_another_pass(still: str) -> None:
    """Nobody sends an event for it: the status is our own write."""
    stops = {"maxRestarts": 0, "rules": [{"action": "FailHyperJob"}]}
    children = [job(phase="Failed"), policy(), job("hj-trainer-1", phase=still)]
    decided = decide(hyperjob(failurePolicy=stops), *children, clusters=(A, B))
    assert phase(decided)[0] == "Failed"
    assert decided.requeue_after == (timedelta() if still == "Running" else None)


def test_nothing_is_made_while_a_predecessors_binding_is_there() -> None:
    """Karmada would hand it on, and the new vcjob would have failed before it began."""
    old = binding(status=vcjob_status("Failed"))
    decided = decide(SINGLE, old, clusters=(A, B))
    assert decided.actions == ()
    assert phase(decided) == ("Pending", "BeingDeleted")
    assert "its old ResourceBinding hj-trainer-0-job is gone" in message(decided)
    assert kinds(decide(SINGLE, clusters=(A, B))) == [("CreateChild", "hj-trainer-0")]


def test_a_report_from_another_place_than_the_pin_is_not_believed() -> None:
    moved = binding(cluster="a", status=vcjob_status("Failed"))
    here = policy(cluster="b")
    assert phase(plan(observed(SINGLE, job(phase="Failed"), here, moved)))[0] == "Starting"
    there = policy(cluster="a")
    assert phase(plan(observed(SINGLE, job(phase="Failed"), there, moved)))[0] == "Failed"
    assert phase(plan(observed(SINGLE, job(phase="Running"), there, moved)))[0] == "Failed"
    nowhere = binding(status=vcjob_status("Failed"))
    assert phase(plan(observed(SINGLE, job(), there, nowhere)))[0] == "Failed"
