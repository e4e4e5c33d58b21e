"""Suspending, order of start, success, requests, and what is left to do after the end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.names import MAX_TOKEN
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Cluster, QueueAdmission
from hyperjob_engine.model.planned import Adopt, CreateChild, DeleteChild, DeleteHyperJob, Plan
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
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
    vcjob_status,
)
from tests.unit.engine.plans import GLOBAL, A, decide, kinds


def phases(decided: Plan) -> dict[str, str]:
    return {entry["name"]: entry["phase"] for entry in decided.status["jobs"]}


def marked(item: Object, attempt: int, *kinds: str) -> Object:
    for kind in kinds or ("labels", "annotations"):
        item["metadata"].setdefault(kind, {})["training.volcano.sh/attempt"] = str(attempt)
    return item


def record(index: int, **fields: Any) -> Object:
    return job_status(index, **{"phase": "Running"} | fields)


# Suspending


def test_suspending_takes_back_what_has_not_ended_and_nothing_else() -> None:
    raw = hyperjob(group(replicas=3), suspend=True, status={"restarts": 1})
    decided = decide(raw, *child(0, "Running"), *child(1, "Completed"), *child(2))
    assert kinds(decided) == [("DeleteChild", "hj-trainer-0"), ("DeleteChild", "hj-trainer-2")]
    status = decided.status
    assert status["state"]["phase"] == "Stopping"
    assert status["restarts"] == 1
    assert phases(decided)["hj-trainer-1"] == "Completed"


def test_created_suspended_nothing_is_made_and_resumed_all_of_it_is() -> None:
    asleep = decide(hyperjob(suspend=True))
    assert asleep.actions == ()
    assert asleep.status["state"]["phase"] == "Suspended"
    assert not asleep.waits_for_capacity
    awake = decide(hyperjob(status=asleep.status))
    assert [type(action) for action in awake.actions] == [CreateChild, CreateChild]


def test_what_had_completed_is_not_run_again_by_a_resume() -> None:
    records = [record(0, phase="Completed"), record(1, phase="Unplaced")]
    raw = hyperjob(status={"jobs": records, "state": {"phase": "Suspended"}})
    decided = decide(raw)
    assert kinds(decided) == [("CreateChild", "hj-trainer-1")]
    beside = hyperjob(status={"jobs": records}, maxDomains=1)
    (made,) = decide(beside, *child(0, "Completed", on="b"), clusters=(A, cluster("b"))).actions
    assert isinstance(made, CreateChild)
    assert made.cluster == "b"


def test_a_suspended_gang_opens_no_gate() -> None:
    held = {"suspension": {"dispatching": True, "scheduling": False}, "gate": "held"}
    raw = hyperjob(suspend=True)
    objects = [*child(0, **held), *child(1, **held)]
    decided = decide(raw, *objects, admission=QueueAdmission.VOLCANO_GLOBAL)
    assert {type(action) for action in decided.actions} == {DeleteChild}


def test_a_failure_of_a_suspended_hyperjob_is_answered_when_it_is_resumed() -> None:
    fields = {"failurePolicy": {"maxRestarts": 1}}
    objects = [*child(0, "Failed"), *child(1, "Running")]
    asleep = decide(hyperjob(suspend=True, **fields), *objects)
    assert asleep.status["state"]["phase"] == "Stopping"
    assert asleep.status["restarts"] == 0
    raw = hyperjob(status=asleep.status, **fields)
    awake = decide(raw, *child(0, "Failed"))
    assert awake.status["restarts"] == 1


# Order of start


def stages(*dependencies: tuple[str, str], **spec: Any) -> Object:
    wait = [{"name": name, "status": status} for name, status in dependencies]
    return hyperjob(group("first", replicas=2), group("second", replicas=1, dependsOn=wait), **spec)


WAITS = {
    "Ready, and none runs": ("Ready", ["Pending", "Pending"], "0 of 2 sub-jobs run"),
    "Ready, and one runs": ("Ready", ["Running", "Pending"], "1 of 2 sub-jobs run"),
    "Ready, and all run": ("Ready", ["Running", "Running"], ""),
    "Ready, and all have run": ("Ready", ["Running", "Completed"], ""),
    "Complete, and all run": ("Complete", ["Running", "Running"], "0 of 2 sub-jobs completed"),
    "Complete, and one did": ("Complete", ["Completed", "Running"], "1 of 2 sub-jobs completed"),
    "Complete, and all did": ("Complete", ["Completed", "Completed"], ""),
}


@pytest.mark.parametrize(("kind", "first", "told"), WAITS.values(), ids=list(WAITS))
def test_a_group_is_made_once_what_it_depends_on_has_got_so_far(
    kind: str, first: list[str], told: str
) -> None:
    objects = [item for i, phase in enumerate(first) for item in child(f"hj-first-{i}", phase)]
    decided = decide(stages(("first", kind)), *objects)
    entry = decided.status["jobs"][2]
    if told:
        assert decided.actions == ()
        assert entry["reason"] == "WaitingForDependency"
        assert entry["message"] == f"waits for replicatedJob first to be {kind}: {told}"
    else:
        assert kinds(decided) == [("CreateChild", "hj-second-0")]


def test_a_class_that_volcano_global_would_not_find_keeps_the_whole_gang_and_is_named() -> None:
    groups = group("first", replicas=1), group("second", replicas=1)
    seen = observed(hyperjob(*groups, minAvailable=1), clusters=(A,))
    decided = plan(replace(seen, missing_classes=frozenset({"not-there"})))
    assert decided.actions == ()
    for entry in decided.status["jobs"]:
        assert entry["reason"] == "WaitingForDependency"
        assert entry["message"].startswith("PriorityClass not-there does not exist")


def test_a_gang_counts_only_the_sub_jobs_that_may_start() -> None:
    decided = decide(stages(("first", "Complete")), clusters=(cluster("a", 16),))
    assert kinds(decided) == [("CreateChild", "hj-first-0"), ("CreateChild", "hj-first-1")]
    objects = [*child("hj-first-0", "Running"), *child("hj-first-1", "Running")]
    running = decide(stages(("first", "Complete")), *objects)
    assert running.status["state"]["phase"] == "Running"
    assert running.status["jobsReady"] == "2/3"


def test_what_runs_stays_though_what_it_depended_on_is_lost() -> None:
    objects = [*child("hj-first-0", "Running"), *child("hj-second-0", "Running")]
    raw = stages(("first", "Ready"), failurePolicy={"maxRestarts": 1})
    decided = decide(raw, *objects)
    assert kinds(decided) == [("CreateChild", "hj-first-1")]


def test_what_waits_for_a_failure_ends_the_hyperjob_once_the_others_have_ended() -> None:
    running = [*child("hj-first-0", "Failed"), *child("hj-first-1", "Running")]
    raw = stages(("first", "Complete"))
    assert decide(raw, *running).status["state"]["phase"] == "Degraded"
    ended = [*child("hj-first-0", "Failed"), *child("hj-first-1", "Completed")]
    decided = decide(raw, *ended)
    status = decided.status
    assert (status["state"]["phase"], status["state"]["reason"]) == ("Failed", "DependencyFailed")
    assert status["state"]["message"] == (
        "hj-first-0 did not complete, and others wait for it: hj-first-0 is Failed on a"
    )
    assert phases(decided)["hj-second-0"] == "Terminated"


# Success


SUCCESS = {
    "any of all": ({"operator": "Any"}, ["Running", "Running", "Completed"], True),
    "any of all, none yet": ({"operator": "Any"}, ["Running", "Running", "Failed"], False),
    "any of a group": (
        {"operator": "Any", "targetReplicatedJobs": ["first"]},
        ["Running", "Running", "Completed"],
        False,
    ),
    "all of a group": (
        {"operator": "All", "targetReplicatedJobs": ["first"]},
        ["Completed", "Completed", "Running"],
        True,
    ),
    "not all of a group": (
        {"operator": "All", "targetReplicatedJobs": ["first"]},
        ["Completed", "Running", "Completed"],
        False,
    ),
    "a group in spite of a failure elsewhere": (
        {"targetReplicatedJobs": ["first"]},
        ["Completed", "Completed", "Failed"],
        True,
    ),
}


@pytest.mark.parametrize(("given", "states", "over"), SUCCESS.values(), ids=list(SUCCESS))
def test_success_ends_the_others(given: Object, states: list[str], over: bool) -> None:
    names = ["hj-first-0", "hj-first-1", "hj-second-0"]
    objects = [
        item for name, phase in zip(names, states, strict=True) for item in child(name, phase)
    ]
    raw = hyperjob(group("first", replicas=2), group("second", replicas=1), successPolicy=given)
    decided = decide(raw, *objects)
    status = decided.status
    assert (status["state"]["phase"] == "Completed") is over
    if over:
        assert ends(status) == ["Completed"]
        assert set(phases(decided).values()) <= {"Completed", "Failed", "Terminated"}
        assert status["runningPods"] == 0


# After the end


def ended(**fields: Any) -> Object:
    """The status of an end by a success policy while a sub-job was running."""
    raw = hyperjob(successPolicy={"operator": "Any"})
    seen = observed(raw, *child(0, "Completed"), *child(1, "Running"), clusters=(A,))
    return plan(seen).status | fields


@pytest.mark.parametrize("phase", ["Running", "", "Failed"])
def test_what_was_ended_goes_whatever_it_says_and_what_had_ended_stays(phase: str) -> None:
    raw = hyperjob(status=ended())
    decided = decide(raw, *child(0, "Completed"), *child(1, phase))
    assert kinds(decided) == [("DeleteChild", "hj-trainer-1")]
    gone = decide(raw, *child(0, "Completed"))
    assert gone == Plan(status=ended())


def test_an_end_from_before_this_controller_is_left_as_it_is() -> None:
    raw = hyperjob(status=ended())
    del raw["status"]["jobs"]
    assert decide(raw, *child(0, "Running")).actions == ()


TIMES = {
    "at once": (0, timedelta(), True, None),
    "not yet": (60, timedelta(seconds=59), False, timedelta(seconds=1)),
    "now": (60, timedelta(seconds=60), True, None),
    "long ago, for the controller was away": (60, timedelta(days=3), True, None),
    "never": (None, timedelta(days=3), False, None),
}


@pytest.mark.parametrize(("ttl", "passed", "goes", "wait"), TIMES.values(), ids=list(TIMES))
def test_an_ended_hyperjob_goes_when_its_time_is_over(
    ttl: int | None, passed: timedelta, goes: bool, wait: timedelta | None
) -> None:
    raw = hyperjob(status=ended(), ttlSecondsAfterFinished=ttl)
    decided = plan(observed(raw, *child(0, "Completed"), now=NOW + passed))
    assert (decided.actions == (DeleteHyperJob(name="hj", uid="hj-uid"),)) is goes
    assert decided.requeue_after == wait


# Requests


def asked(kind: str, words: str, status: Object | None = None, **spec: Any) -> Object:
    records = {"jobs": [record(0), record(1)], "state": {"phase": "Running"}}
    raw = hyperjob(status=records if status is None else status, **spec)
    raw["metadata"]["annotations"] = {f"training.volcano.sh/{kind}": words}
    return raw


BOTH = [*child(0, "Running"), *child(1, "Running")]
REQUESTS = {
    "restart all": ("restart", "t1", [1, 1], []),
    "restart one": ("restart", "t1 hj-trainer-1", [0, 1], []),
    "restart one twice": ("restart", "t1 hj-trainer-1 hj-trainer-1", [0, 1], []),
    "restart an unknown one": ("restart", "t1 hj-trainer-7", [0, 0], ["hj-trainer-7"]),
    "move one": ("migrate", "t1 hj-trainer-0", [1, 0], []),
    "move nothing": ("migrate", "t1", [0, 0], ["names no sub-job"]),
}


@pytest.mark.parametrize(("kind", "words", "counted", "refused"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_answered_once_and_costs_nothing(
    kind: str, words: str, counted: list[int], refused: list[str]
) -> None:
    decided = decide(asked(kind, words), *BOTH, clusters=(A, cluster("b")))
    status = decided.status
    assert decided.actions == ()
    assert [entry.get("attempt", 0) for entry in status["jobs"]] == counted
    assert status["requests"] == {kind: "t1"}
    assert status["restarts"] == 0
    notes = [event.note for event in decided.events if event.reason == "RequestRefused"]
    assert len(notes) == len(refused)
    assert all(word in note for word, note in zip(refused, notes, strict=True))
    again = asked(kind, words, status=status)
    assert decide(again, *BOTH, clusters=(A, cluster("b"))).status["jobs"] == (
        [dict(entry) for entry in status["jobs"]]
    )


def test_a_token_that_admission_would_refuse_is_not_copied_into_the_status() -> None:
    decided = decide(asked("restart", "x" * 100_000), *BOTH, clusters=(A, cluster("b")))
    assert "xxx" not in str(decided.status)
    assert decided.events == ()
    longest = "x" * MAX_TOKEN
    assert decide(asked("restart", longest), *BOTH).status["requests"] == {"restart": longest}


def test_a_move_away_from_a_cluster_excludes_no_other_one_for_good() -> None:
    until = rfc3339(NOW + timedelta(minutes=5))
    entry = job_status(0, phase="Running")
    entry |= {"cluster": "a", "excludedClusters": ["b"], "excludedUntil": until}
    before = {"jobs": [entry], "requests": {"restart": "t0"}}
    raw = asked("migrate", "t1 hj-trainer-0", status=before)
    decided = decide(raw, *BOTH, clusters=(A, cluster("b"), cluster("spare")))
    moved = decided.status["jobs"][0]
    assert (moved["excludedClusters"], moved["excludedForGood"]) == (["b", "a"], ["a"])
    assert moved["excludedUntil"] == until
    assert decided.status["requests"] == {"restart": "t0", "migrate": "t1"}


def test_a_sub_job_stays_where_it_is_while_no_other_cluster_can_take_it() -> None:
    """Taken away first, it would wait for room that it had."""
    raw = asked("migrate", "t1 hj-trainer-0")
    decided = decide(raw, *BOTH, clusters=(A, cluster("b", 3, total=64)))
    assert decided.actions == ()
    status = decided.status
    assert status["requests"] == {"migrate": "t1"}
    assert "excludedClusters" not in status["jobs"][0]
    (note,) = [event.note for event in decided.events if event.reason == "RequestRefused"]
    assert "hj-trainer-0 stays on a" in note
    assert "b lacks 5 nvidia.com/gpu (3 free)" in note


MIGRATE = {"action": "MigrateJob", "onJobPhases": ["Failed"]}
OTHERS = (
    cluster("far", unusable="is not Ready"),
    cluster("small", 1, total=1),
    cluster("spare"),
)


@pytest.mark.parametrize(
    ("policy_", "before", "clusters", "after"),
    [
        pytest.param("Required", ["b"], (A, cluster("b"), *OTHERS), ["a"], id="two-are-allowed"),
        pytest.param("Preferred", ["b"], (A, cluster("b"), *OTHERS[:2]), ["a"], id="two-fit"),
        pytest.param("Preferred", ["b"], (A, cluster("b"), *OTHERS), ["b", "a"], id="one-is-left"),
        pytest.param(
            "Preferred", ["b", "spare"], (A, cluster("b"), *OTHERS), ["spare", "a"], id="oldest"
        ),
        pytest.param("Preferred", [], (A,), ["a"], id="nowhere-else"),
    ],
)
def test_after_several_moves_the_cluster_that_was_left_first_is_tried_again(
    policy_: str, before: list[str], clusters: tuple[Cluster, ...], after: list[str]
) -> None:
    """Of many clusters a sub-job can often use two: excluding both left it nowhere."""
    wanted = group(clusterNames=["a", "b"], clusterPolicy=policy_)
    entry = job_status(0, phase="Failed")
    status = {"jobs": [{**entry, "cluster": "a", "excludedClusters": before}]}
    raw = hyperjob(wanted, failurePolicy={"maxRestarts": 9, "rules": [MIGRATE]}, status=status)
    decided = decide(raw, *child(0, "Failed"), *child(1, "Running"), clusters=clusters)
    assert decided.status["jobs"][0]["excludedClusters"] == after


def test_a_request_that_came_with_a_copied_manifest_restarts_nothing() -> None:
    decided = decide(asked("restart", "t1", status={}))
    status = decided.status
    assert status["requests"] == {"restart": "t1"}
    assert all("attempt" not in entry for entry in status["jobs"])


def test_an_ended_hyperjob_refuses_requests_and_says_so_once() -> None:
    raw = asked("restart", "t2", status=ended())
    decided = plan(observed(raw, *child(0, "Completed")))
    assert decided.actions == ()
    assert decided.status["requests"] == {"restart": "t2"}
    (event,) = decided.events
    assert event.note == "restart t2: the HyperJob has ended, create a new one"
    again = asked("restart", "t2", status=decided.status)
    assert plan(observed(again, *child(0, "Completed"))).events == ()


def test_a_completed_sub_job_is_not_moved() -> None:
    raw = asked("migrate", "t1 hj-trainer-0")
    decided = decide(raw, *child(0, "Completed"), *child(1, "Running"), clusters=(A, cluster("b")))
    assert [entry.get("attempt", 0) for entry in decided.status["jobs"]] == [0, 0]
    assert ["has completed" in event.note for event in decided.events][:1] == [True]


# Edits


@pytest.mark.parametrize("policy_", ["Preferred", "Required"])
def test_other_clusters_move_nothing_that_runs_and_count_for_a_restart(policy_: str) -> None:
    wishes = {"clusterNames": ["b"], "clusterPolicy": policy_}
    raw = hyperjob(group(replicas=1, **wishes), maxDomains=1)
    clusters = (A, cluster("b"))
    assert decide(raw, *child(0, "Running"), clusters=clusters).actions == ()
    again = [record(0, attempt=1, phase="Unplaced")]
    raw = hyperjob(group(replicas=1, **wishes), maxDomains=1, status={"jobs": again})
    (made,) = decide(raw, clusters=clusters).actions
    assert isinstance(made, CreateChild)
    assert made.cluster == "b"


# Attempts


def test_a_sub_job_that_lost_its_labels_is_labelled_again_and_not_taken_for_an_old_one() -> None:
    raw = hyperjob(group(replicas=1), status={"jobs": [record(0, attempt=2)]})
    stripped = marked(job(marked={}), 2, "annotations")
    where = binding(cluster="a", status=vcjob_status("Running"))
    decided = decide(raw, stripped, marked(policy(), 2), where)
    (action,) = decided.actions
    assert isinstance(action, Adopt)
    assert action.patch["metadata"]["labels"]["training.volcano.sh/attempt"] == "2"


def test_what_a_child_bears_counts_where_the_status_was_lost() -> None:
    objects = [marked(job(phase="Running"), 3), marked(policy(), 3)]
    decided = decide(hyperjob(group(replicas=1)), *objects)
    assert decided.actions == ()
    assert decided.status["jobs"][0]["attempt"] == 3


def test_an_old_copy_that_reports_success_changes_nothing() -> None:
    raw = hyperjob(group(replicas=1), status={"jobs": [record(0, attempt=1, phase="Unplaced")]})
    decided = decide(raw, *child(0, "Completed"))
    assert kinds(decided) == [("DeleteChild", "hj-trainer-0")]
    assert not ends(decided.status)


def test_the_old_policy_of_a_vcjob_that_is_gone_goes_before_a_new_one_is_made() -> None:
    raw = hyperjob(group(replicas=1), status={"jobs": [record(0, attempt=1, phase="Unplaced")]})
    decided = decide(raw, policy())
    assert decided.actions == (
        DeleteChild(name="hj-trainer-0", job_uid=None, policy_uid="pp-hj-trainer-0"),
    )


def test_an_orphan_ends_nothing_before_it_is_ours() -> None:
    orphan = job("hj-trainer-0", phase="Completed", owners=[])
    for spec in ({}, {"quorum": 1}):
        seen = observed(hyperjob(group(replicas=1), **spec), orphan, policy(), clusters=(A,))
        assert not ends(plan(seen).status)


def refused_move(*others: Object, clusters: tuple[Cluster, ...], replicas: int = 2) -> list[str]:
    """Give why sub-job 0, which runs on a, is not moved where one domain is allowed."""
    raw = asked("migrate", "t1 hj-trainer-0", maxDomains=1)
    raw["spec"]["replicatedJobs"][0]["replicas"] = replicas
    decided = decide(raw, *child(0, "Running"), *others, clusters=clusters)
    return [event.note for event in decided.events if event.reason == "RequestRefused"]


def test_a_move_counts_the_clusters_that_the_other_sub_jobs_hold() -> None:
    full, roomy = cluster("b", 0, total=64), cluster("c")
    assert refused_move(clusters=(A, roomy), replicas=1) == [], "its own cluster is left"
    for phase in ("Running", "Completed"):
        assert refused_move(*child(1, phase, on="b"), clusters=(A, cluster("b"), roomy)) == []
        (note,) = refused_move(*child(1, phase, on="b"), clusters=(A, full, roomy))
        assert "hj-trainer-0 stays on a" in note
    unplaced = [job("hj-trainer-1"), binding("hj-trainer-1")]
    assert refused_move(*unplaced, clusters=(A, roomy)) == [], "it holds no cluster yet"
    left = [policy("hj-trainer-1", cluster="b"), binding("hj-trainer-1", cluster="b")]
    assert refused_move(*left, clusters=(A, full, roomy)) == [], "its vcjob is gone"


# After the end, and of objects that a person has deleted


NAME = "hj-trainer-0"


def completed(*conditions: Object, **status: Any) -> Object:
    """Build a HyperJob that completed, with conditions as the Go controller writes them too."""
    end = {"type": "Completed", "status": "True", "reason": "JobsCompleted", "message": "m"}
    state = {"phase": "Completed", "reason": "JobsCompleted", "message": "m"}
    return {"state": state, "conditions": [{**end, **each} for each in conditions], **status}


MINUTES = [{"lastTransitionTime": f"2026-01-02T03:0{minute}:05Z"} for minute in range(5)]


ENDS: dict[str, tuple[Object, timedelta]] = {
    "its completionTime": (
        completed(MINUTES[4], completionTime="2026-01-02T03:02:05Z"),
        timedelta(minutes=8),
    ),
    "the last condition that is true": (
        completed(MINUTES[1], MINUTES[3], {"type": "Suspended", "status": "False", **MINUTES[4]}),
        timedelta(minutes=9),
    ),
    "now, without a time": (completed({}), timedelta(minutes=10)),
}


@pytest.mark.parametrize(("status", "left"), ENDS.values(), ids=list(ENDS))
def test_the_time_to_live_counts_from(status: Object, left: timedelta) -> None:
    found = plan(observed(hyperjob(ttlSecondsAfterFinished=600, status=status)))
    assert (found.actions, found.requeue_after) == ((), left)


LEFT: dict[str, tuple[Object, list[Object], list[str]]] = {
    "a policy without a vcjob and a record": (record(1), [policy(NAME)], [NAME]),
    "its own vcjob without a record": (record(1), [job(NAME)], [NAME]),
    "its own vcjob without the labels": (record(1), [job(NAME, marked={})], []),
    "the vcjob of another": (record(1), [job(NAME, owners=owner("other"))], []),
    "one that completed": (record(0, phase="Completed"), [job(NAME, phase="Completed")], []),
    "one that its end stopped": (
        record(0, phase="Terminated", reason="EndedWithHyperJob"),
        [job(NAME, phase="Running")],
        [NAME],
    ),
    "one of an earlier attempt": (record(0, attempt=1), [job(NAME, phase="Running")], [NAME]),
    "one that failed": (record(0, phase="Failed"), [job(NAME, phase="Failed")], []),
    "one that failed and runs again": (
        record(0, phase="Failed"),
        [job(NAME, phase="Running")],
        [NAME],
    ),
    "one that completed and runs again": (
        record(0, phase="Completed"),
        [job(NAME, phase="Running")],
        [],
    ),
}


@pytest.mark.parametrize(("record", "objects", "deleted"), LEFT.values(), ids=list(LEFT))
def test_an_ended_hyperjob_keeps_its_sub_jobs_except(
    record: Object, objects: list[Object], deleted: list[str]
) -> None:
    status = completed({}, jobs=[record])
    found = plan(observed(hyperjob(status=status), *objects))
    assert [each.name for each in found.actions] == deleted


def test_a_success_policy_for_no_sub_job_is_never_satisfied() -> None:
    policy_ = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    status = {"state": {"phase": "Running"}}
    objects = [job(NAME, phase="Completed"), job("hj-trainer-1", phase="Running")]
    decided = plan(observed(hyperjob(successPolicy=policy_, status=status), *objects))
    assert decided.status["state"]["phase"] != "Completed"


@pytest.mark.parametrize(
    ("admission", "gate", "held"),
    [
        (GLOBAL, "held", True),
        (GLOBAL, "open", False),
        (QueueAdmission.BUILTIN, "held", True),
        (QueueAdmission.BUILTIN, "open", False),
        (QueueAdmission.NONE, "held", False),
    ],
)
def test_a_policy_that_a_person_deleted_is_created_with_the_gate_of_its_vcjob(
    admission: QueueAdmission, gate: str, held: bool
) -> None:
    seen = observed(
        hyperjob(group(replicas=1), status={"jobs": [record(0, phase="Placed")]}),
        job(NAME),
        binding(NAME, cluster="a", gate=gate, suspension={"scheduling": False}),
        clusters=(cluster("a"),),
        admission=admission,
    )
    created = next(each for each in plan(seen).actions if isinstance(each, CreateChild))
    assert created.job is None
    suspension = created.policy["spec"].get("suspension") or {}
    assert bool(suspension.get("dispatching")) is held
    (affinity,) = created.policy["spec"]["placement"]["clusterAffinities"]
    # The webhook closes the gate of a ResourceBinding with this name.
    named = {GLOBAL: "hyperjob-gang", QueueAdmission.BUILTIN: "hyperjob-held"}
    assert affinity["affinityName"] == named.get(admission, "hyperjob")


def test_the_start_stays_while_a_hyperjob_waits_again() -> None:
    first = "2026-01-02T03:01:00Z"
    waits = decide(hyperjob(status={"startTime": first}), clusters=(cluster("a", 0),))
    assert waits.status["state"]["phase"] == "Pending"
    assert waits.status["startTime"] == first
    new = decide(hyperjob(), clusters=(cluster("a", 0),))
    assert "startTime" not in new.status


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
    decided = decide(raw, *objects)
    made = [item.name for item in decided.actions if isinstance(item, CreateChild)]
    if phase == "Failed":
        assert (decided.status["state"]["phase"], made) == ("Failed", [])
    else:
        assert made == ["hj-trainer-0"]
