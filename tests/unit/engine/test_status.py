from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import (
    Action,
    Adopt,
    DeleteChild,
    DeleteHyperJob,
    DeleteWork,
    Event,
    OpenGate,
    ReleaseScheduling,
    Repin,
    Resize,
)
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import (
    action_events,
    merge_patch,
    pass_events,
    status_events,
)
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
    vcjob_status,
)
from tests.unit.engine.plans import decide

A = cluster("a")
GLOBAL = QueueAdmission.VOLCANO_GLOBAL
FULL = cluster("a", 0, total=100)


def derived(raw: Object, *objects: Object, **options: object) -> Object:
    status = plan(observed(raw, *objects, **options)).status  # type: ignore[arg-type]
    assert_status(status)
    return status


QUEUED = {"suspension": {"scheduling": True}}
BOTH_RUN = "2 of 2 sub-jobs run or completed, on a"
NPU, CORES = "example.com/npu", "volcano.sh/vgpu-cores"

DONE = child(1, phase="Completed")
RUNS = child(1, phase="Running")
PHASES = {
    "nothing has room": ([], "Pending/InsufficientCapacity", "needs 8 nvidia.com/gpu"),
    "only bindings are missing": (
        [job("hj-trainer-0"), policy("hj-trainer-0"), job("hj-trainer-1"), policy("hj-trainer-1")],
        "Starting/Dispatching",
        "is Placed on a: waits for Karmada",
    ),
    "all wait for the queue": (
        [*child(0, **QUEUED), *child(1, **QUEUED)],
        "Queued/WaitingForQueue",
        "0 of 2 needed sub-jobs are admitted; waits for queue default",
    ),
    "one waits for the queue": (
        [*child(0), *child(1, **QUEUED)],
        "Queued/WaitingForQueue",
        "1 of 2 needed sub-jobs are admitted",
    ),
    "no cluster fits for Karmada": (
        [*child(0), *child(1, unscheduled=("NoClusterFit", "0/2 clusters are available"))],
        "Starting/NoClusterFit",
        "Karmada: 0/2 clusters are available",
    ),
    "Karmada has no room": (
        [*child(0), *child(1, unscheduled=("SchedulerError", "no enough resource"))],
        "Starting/SchedulerError",
        "no enough resource",
    ),
    "the member refuses the job": (
        [*child(0, phase="Running"), *child(1, apply_error="queue is not open")],
        "Starting/ApplyFailed",
        "hj-trainer-1 is Placed on a: queue is not open",
    ),
    "pods are pending": (
        [*child(0, phase="Running"), *child(1, phase="Pending", pods={"pending": 6, "running": 2})],
        "Starting/PodsPending",
        "hj-trainer-1 is Pending on a: 2 of 8 pods run",
    ),
    "all run": ([*child(0, phase="Running"), *RUNS], "Running/JobsRunning", BOTH_RUN),
    "one has completed, one runs": (
        [*child(0, phase="Completed"), *RUNS],
        "Running/JobsRunning",
        BOTH_RUN,
    ),
    "one has failed, one runs": (
        [*child(0, phase="Failed"), *RUNS],
        "Degraded/JobsFailed",
        "1 sub-jobs run or completed, 2 are needed: hj-trainer-0 is Failed on a",
    ),
    "all completed": (
        [*child(0, phase="Completed"), *DONE],
        "Completed/JobsCompleted",
        "2 sub-jobs completed on a",
    ),
    "one failed, one completed": (
        [*child(0, phase="Failed"), *DONE],
        "Failed/JobsFailed",
        "1 of 2 sub-jobs did not complete: hj-trainer-0 is Failed on a",
    ),
    "one terminated": (
        [*child(0, phase="Terminated", pods={"failed": 1}), *child(1, phase="Aborted")],
        "Failed/JobsFailed",
        "2 of 2 sub-jobs did not complete",
    ),
    "aborted by hand": (
        [*child(0, phase="Aborted"), *DONE],
        "Failed/JobsAborted",
        "hj-trainer-0 is Aborted on a",
    ),
    "aborting is not yet the end": (
        [*child(0, phase="Aborting"), *DONE],
        "Starting/Dispatching",
        "hj-trainer-0 is Aborting on a",
    ),
    "a phase that is not known is neither success nor failure": (
        [*child(0, phase="Dreaming"), *DONE],
        "Starting/Dispatching",
        "hj-trainer-0 is Dreaming on a",
    ),
}


@pytest.mark.parametrize(("objects", "phase", "text"), PHASES.values(), ids=list(PHASES))
def test_phase(objects: list[Object], phase: str, text: str) -> None:
    status = derived(hyperjob(), *objects, clusters=(FULL,))
    state, (upstream,) = status["state"], status["replicatedJobsStatus"]
    assert ("jobStates" in upstream) is bool(objects), "a sub-job without a place has no state"
    assert f"{state['phase']}/{state['reason']}" == phase
    assert text in state["message"]


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("RestartJob", "1 of 2 needed sub-jobs run; hj-trainer-0 is Failed on a"),
        (
            "RestartHyperJob",
            (
                "0 of 2 needed sub-jobs run; hj-trainer-0 is Failed on a;"
                " hj-trainer-1: restarted with all sub-jobs, because hj-trainer-0 is Failed on a"
            ),
        ),
    ],
)
def test_what_is_made_again_is_named_once_with_the_failure(action: str, text: str) -> None:
    raw = hyperjob(failurePolicy={"maxRestarts": 1, "rules": [{"action": action}]})
    objects = [*child(0, phase="Failed"), *child(1, phase="Running")]
    state = derived(raw, *objects, clusters=(A,))["state"]
    assert (state["phase"], state["message"]) == ("Restarting", text)


@pytest.mark.parametrize(
    ("phases", "reason", "text", "event"),
    [
        (("Running", "Pending"), "MinAvailableNotMet", "hj-trainer-1 is Pending on a", "Warning"),
        (("Running", "Running", ""), "Resized", "grows to 3 sub-jobs: 2 sub-jobs run", "Normal"),
    ],
)
def test_after_it_ran_missing_sub_jobs_make_it_degraded(
    phases: tuple[str, ...], reason: str, text: str, event: str
) -> None:
    ran = [job_status(index, phase="Running", startTime=rfc3339(NOW)) for index in range(2)]
    was = {"state": {"phase": "Running"}, "jobs": ran}
    seen = [each for index, phase in enumerate(phases) for each in child(index, phase=phase)]
    status = derived(hyperjob(group(replicas=len(phases)), status=was), *seen)
    assert (status["state"]["phase"], status["state"]["reason"]) == ("Degraded", reason)
    assert text in status["state"]["message"]
    assert [(each.type, each.reason) for each in status_events(was, status)] == [
        (event, "Degraded")
    ]


def test_min_available_is_what_running_means() -> None:
    raw = hyperjob(minAvailable=1)
    for phase, number, rest in (
        ("Pending", 1, "; hj-trainer-1 is Pending on b: "),
        ("Completed", 2, ""),
    ):
        objects = [*child(0, phase="Running"), *child(1, phase=phase, on="b")]
        state = derived(raw, *objects)["state"]
        assert state["phase"] == "Running"
        told = f"{number} of 2 sub-jobs run or completed, on a{rest}"
        assert state["message"].startswith(told) if rest else state["message"] == told


def test_a_sub_job_without_a_place_behind_a_queue() -> None:
    raw = hyperjob(minAvailable=1)
    state = derived(raw, *child(0, **QUEUED), clusters=(FULL,), admission=GLOBAL)["state"]
    assert state["phase"] == "Queued"


@pytest.mark.parametrize(
    ("name", "marked", "told"),  # marked: no cluster reported it when the vcjob was created
    [(NPU, "", True), (CORES, CORES, False), (CORES, "", True)],
)
def test_a_queued_sub_job_says_which_of_its_resources_no_cluster_reports(
    name: str, marked: str, told: bool
) -> None:
    raw = hyperjob(group(replicas=1))
    (container,) = raw["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]["spec"][
        "containers"
    ]
    container["resources"]["requests"][name] = "1"
    objects = child(0, **QUEUED)
    objects[0]["metadata"]["annotations"] = {"training.volcano.sh/uncounted": marked}
    state = derived(raw, *objects, clusters=(cluster("a"),), admission=GLOBAL)["state"]
    text = f"Volcano Global admits no sub-job that requests {name}, which no cluster reports"
    assert (state["phase"], text in state["message"]) == ("Queued", told)


def test_the_gate_is_told_per_sub_job() -> None:
    held = {"gate": "held", "suspension": {"dispatching": True, "scheduling": False}}
    waiting = {"gate": "held", "suspension": {"dispatching": True, "scheduling": True}}
    objects = [*child(0, **held), *child(1, **waiting)]
    status = derived(hyperjob(), *objects, clusters=(cluster("a"),), admission=GLOBAL)
    assert [(entry["phase"], entry["reason"]) for entry in status["jobs"]] == [
        ("Placed", "WaitingForGang"),
        ("Queued", "WaitingForQueue"),
    ]


def test_upstream_fields_have_upstreams_form() -> None:
    failed = vcjob_status("Failed", {"failed": 1}) | {
        "state": {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "node lost",
            "lastTransitionTime": "2026-01-02T03:03:00Z",
        }
    }
    name = "hj-trainer-0"
    first = [job(name), policy(name), binding(name, cluster="a", status=failed)]
    status = derived(
        hyperjob(generation=3), *first, *child(1, phase="Completed", pods={"succeeded": 8})
    )
    assert status["conditions"][0] == {
        "type": "Failed",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "reason": "SomeChildVCJobsUnsuccessful",
        "message": "HyperJob failed: 1 completed, 1 failed, 0 aborted, 0 terminated",
    }
    assert status["replicatedJobsStatus"] == [
        {
            "name": "trainer",
            "jobStates": {
                "hj-trainer-0": failed["state"],
                "hj-trainer-1": {
                    "phase": "Completed",
                    "lastTransitionTime": "2026-01-02T03:00:30Z",
                },
            },
            "succeeded": 8,
            "failed": 1,
        }
    ]
    assert (status["splitCount"], status["observedGeneration"]) == (2, 3)


def test_completed_in_upstreams_words() -> None:
    status = derived(hyperjob(), *child(0, phase="Completed"), *child(1, phase="Completed"))
    condition = status["conditions"][0]
    assert (condition["type"], condition["reason"], condition["message"]) == (
        "Completed",
        "AllChildVCJobsCompleted",
        "All 2 child vcJobs completed",
    )


def test_every_sub_job_and_cluster_is_listed() -> None:
    running = binding("hj-trainer-1", cluster="b", status=vcjob_status("Running", {"running": 7}))
    objects = [
        *child(0, phase="Pending", pods={"pending": 8}),
        job("hj-trainer-1"),
        policy("hj-trainer-1", cluster="b"),
        running,
    ]
    status = derived(hyperjob(), *objects)
    assert status["jobs"] == [
        job_status(
            0,
            phase="Pending",
            cluster="a",
            accelerators=8,
            reason="PodsPending",
            message="0 of 8 pods run",
            pods=8,
            lastTransitionTime="2026-01-02T03:00:30Z",
        ),
        job_status(
            1,
            phase="Running",
            cluster="b",
            accelerators=8,
            running=7,
            pods=8,
            startTime="2026-01-02T03:00:30Z",
            lastTransitionTime="2026-01-02T03:00:30Z",
        ),
    ]
    assert status["clusters"] == [
        {"name": "a", "jobs": 1, "accelerators": 8},
        {"name": "b", "jobs": 1, "ready": 1, "running": 7, "accelerators": 8},
    ]
    assert (status["jobsReady"], status["runningPods"], status["clusterNames"]) == ("1/2", 7, "a,b")
    assert (status["queue"], status["restarts"]) == ("default", 0)


def test_start_and_completion_are_set_once() -> None:
    queued = derived(hyperjob(), *child(0, **QUEUED), *child(1, **QUEUED))
    assert "startTime" not in queued
    running = [*child(0, phase="Running"), *child(1, phase="Running")]
    first = derived(hyperjob(), *running)
    assert first["startTime"] == "2026-01-02T03:04:05Z"
    later = NOW + timedelta(hours=1)
    ended = [*child(0, phase="Completed"), *child(1, phase="Completed")]
    last = derived(hyperjob(status=first), *ended, now=later)
    assert last["startTime"] == first["startTime"]
    assert last["completionTime"] == "2026-01-02T04:04:05Z"


def test_the_time_of_a_phase_moves_only_with_the_phase() -> None:
    running = [*child(0, phase="Running"), *child(1, phase="Running")]
    first = derived(hyperjob(), *running)
    again = derived(hyperjob(status=first), *running, now=NOW + timedelta(hours=1))
    assert again == first


def test_a_wiped_status_forgets_nothing() -> None:
    """Karmada empties the status when an apply fails though the member's job still runs."""
    groups = group(replicas=1), group("other", replicas=1)
    others = child("hj-other-0", phase="Running")
    first = derived(hyperjob(*groups), *child(0, phase="Running"), *others)
    wiped = [*child(0, apply_error="admission webhook denied the request"), *others]
    second = derived(hyperjob(*groups, status=first), *wiped)
    assert second["state"]["phase"] == "Running"
    entry = second["jobs"][0]
    assert (entry["phase"], entry["reason"], entry["running"]) == ("Running", "ApplyFailed", 8)
    assert entry["lastTransitionTime"] == first["jobs"][0]["lastTransitionTime"]
    assert second["replicatedJobsStatus"] == first["replicatedJobsStatus"]
    gone = cluster("a", unusable="is not Ready", not_ready_since=NOW)
    third = derived(hyperjob(*groups, status=first), *wiped, clusters=(gone,))
    lost = third["jobs"][0]
    assert lost["reason"] == "ClusterNotReady", "the cause of the failed apply"
    assert lost["phase"] == "Running", "its last known phase"


def test_a_sub_job_that_has_not_started_again_has_no_state_of_its_last_vcjob() -> None:
    upstream = {"name": "trainer", "jobStates": {"hj-trainer-0": {"phase": "Running"}}}
    was = {"jobs": [job_status(0, phase="Placed")], "replicatedJobsStatus": [upstream]}
    found = derived(hyperjob(group(replicas=1), status=was), *child(0))
    assert found["replicatedJobsStatus"][0]["jobStates"] == {"hj-trainer-0": {}}


def test_what_the_controller_does_with_a_sub_job_comes_before_the_loss_of_its_cluster() -> None:
    gone = cluster("a", unusable="is not Ready", not_ready_since=NOW)
    running = child(0, phase="Running")
    for raw, reason in (
        (hyperjob(group(replicas=1)), "ClusterNotReady"),
        (hyperjob(group(replicas=1), suspend=True), "Suspended"),
    ):
        found = derived(raw, *running, clusters=(gone,))
        assert found["jobs"][0]["reason"] == reason


def test_an_ended_sub_job_never_goes_back_because_of_an_empty_status() -> None:
    raw = hyperjob(group(replicas=1))
    first = derived(raw, *child(0, phase="Running"))
    first["jobs"][0]["phase"] = "Completed"
    second = derived(hyperjob(group(replicas=1), status=first), *child(0))
    assert second["state"]["phase"] == "Completed"


def test_messages_are_bounded() -> None:
    raw = hyperjob(group(replicas=300))
    clusters = tuple(cluster(f"cluster-{i}", 1) for i in range(100))
    status = derived(raw, clusters=clusters)
    assert len(status["state"]["message"]) <= 1024
    assert all(len(entry["message"]) <= 400 for entry in status["jobs"])
    assert "and 297 more" in status["state"]["message"]


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "others": 2}, {"a": 2}, {"a": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, {"a": {"y": None}}),
        ({"a": {"x": {"z": 1}}}, {"a": {"x": {"z": 2}}}, {"a": {"x": {"z": 2}}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2}]}, {"a": [{"x": 2}]}),
        ({"a": {"x": [1]}}, {"a": {"y": 2}}, {"a": {"x": None, "y": 2}}),
        ({}, {"a": 0}, {"a": 0}),
        (None, {"a": 0}, {"a": 0}),
    ],
)
def test_only_the_difference_is_written(old: Object | None, new: Object, patch: Object) -> None:
    assert merge_patch(old, new) == patch


def test_events_tell_transitions_once() -> None:
    raw = hyperjob()
    first = derived(raw, *child(0, phase="Running"), *child(1, phase="Running"))
    assert [event.reason for event in status_events({}, first)] == ["Running"]
    assert status_events(first, first) == ()
    failed = derived(hyperjob(status=first), *child(0, phase="Failed"), *child(1, phase="Running"))
    (event,) = status_events(first, failed)
    assert (event.type, event.reason) == ("Warning", "Degraded")


def test_a_new_trouble_within_a_phase_is_an_event() -> None:
    first = derived(hyperjob(), *child(0, phase="Pending"), *child(1, phase="Pending"))
    second = derived(
        hyperjob(status=first), *child(0, phase="Pending"), *child(1, apply_error="no such queue")
    )
    assert [(event.type, event.reason) for event in status_events(first, second)] == [
        ("Warning", "ApplyFailed")
    ]
    assert status_events(second, second) == ()


def test_a_start_and_the_phase_that_it_leads_to_are_one_event() -> None:
    def event(reason: str, note: str, kind: Literal["Normal", "Warning"] = "Normal") -> Event:
        return Event(type=kind, reason=reason, action="Reconcile", note=note)

    created, opened, moved = (
        event(reason, reason) for reason in ("Created", "GateOpened", "Moved")
    )
    queued, other = event("Queued", "waits for queue default"), event("JobFailed", "other")
    assert pass_events((queued, other), (moved, created)) == (
        event("Queued", "Created; waits for queue default"),
        other,
        moved,
    )
    assert pass_events((queued,), (created, opened)) == (
        event("Queued", "Created; GateOpened; waits for queue default"),
    )
    assert pass_events((queued,), ()) == (queued,)
    # Without a change of phase, and beside trouble, each Event stays by itself.
    refused, degraded = event("Refused", "no", "Warning"), event("Degraded", "one", "Warning")
    for alone in ((), (other,), (refused,), (degraded, other)):
        assert pass_events(alone, (created, moved)) == (*alone, created, moved)


def test_like_actions_are_one_event() -> None:
    decided = decide(hyperjob(group(replicas=7)), clusters=(A, cluster("b")))
    (event,) = action_events(decided.actions)
    assert event.note == (
        "Created hj-trainer-0, hj-trainer-1, hj-trainer-2, hj-trainer-3, hj-trainer-4"
        " and 2 more on a, b"
    )


OPEN = {"binding": "j", "binding_uid": "u", "policy_uid": "u", "release_scheduling": False}
DISPATCHER = "which Volcano Global's dispatcher left out: restart the dispatcher"


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([Adopt(kind="Job", name="j", uid="u", patch={})], "Normal Adopted: Adopted j"),
        ([Resize(name="j", uid="u", operations=())], "Normal Resized: Changed the size of j"),
        (
            [Repin(name="j", uid="u", cluster="b", demand={}, placement={})],
            "Normal Moved: Moved j to another cluster",
        ),
        ([DeleteChild(name="j", job_uid="u", policy_uid=None)], "Normal Deleted: Deleted j"),
        ([OpenGate(name="j", **OPEN)], "Normal GateOpened: Let j be dispatched"),
        (
            [OpenGate(name="j", **OPEN), OpenGate(name="k", **OPEN)],
            "Normal GateOpened: Let j, k be dispatched together",
        ),
        (
            [DeleteWork(name="j", clusters=("b", "a")), DeleteWork(name="k", clusters=("b",))],
            "Warning WorkDeleted: Deleted the Work of j, k on a, b, which Karmada had forgotten",
        ),
        (
            [ReleaseScheduling(name="j", binding="j", binding_uid="u")],
            f"Warning Released: Released j, {DISPATCHER}",
        ),
        (
            [DeleteHyperJob(name="j", uid="u")],
            "Normal Expired: Deleted j: ttlSecondsAfterFinished has passed",
        ),
    ],
)
def test_every_action_is_told(actions: list[Action], told: str) -> None:
    (event,) = action_events(actions)
    assert f"{event.type} {event.reason}: {event.note}" == told


def test_a_binding_that_tells_no_phase_leaves_a_started_sub_job_as_it_was() -> None:
    first = derived(hyperjob(group(replicas=1)), *child(0, phase="Running"))
    silent = [job("hj-trainer-0"), policy("hj-trainer-0"), binding("hj-trainer-0", cluster="a")]
    assert derived(hyperjob(group(replicas=1), status=first), *silent) == first


FOREIGN = [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}]
LEFT = "; pods may be left of hj-trainer-0"
STOPS: dict[str, tuple[list[Object], dict[str, Any], str, str]] = {
    "its vcjob is there": (child(0, phase="Running"), {}, "Stopping", LEFT),
    "its vcjob is being deleted": ([job("hj-trainer-0", deleting=True)], {}, "Stopping", LEFT),
    "its member shows pods": ([], {"pods_left": {"hj-trainer-0": 8}}, "Stopping", LEFT),
    "its member shows none": (
        [],
        {"pods_left": {"hj-trainer-0": 0}, "ending": {"hj-trainer-0": NOW + timedelta(seconds=9)}},
        "Suspended",
        "",
    ),
    "nobody shows pods, within their grace period": (
        [],
        {
            "pods_left": {"hj-trainer-0": None},
            "ending": {"hj-trainer-0": NOW + timedelta(seconds=9)},
        },
        "Stopping",
        LEFT,
    ),
    "nobody shows pods, after it": ([], {"ending": {"hj-trainer-0": NOW}}, "Suspended", ""),
    "nothing was created": ([], {}, "Suspended", ""),
    "another owner has its name": ([job("hj-trainer-0", owners=FOREIGN)], {}, "Suspended", ""),
}


@pytest.mark.parametrize(("objects", "known", "phase", "left"), STOPS.values(), ids=list(STOPS))
def test_a_hyperjob_is_suspended_only_when_no_pod_is_left(
    objects: list[Object], known: dict[str, Any], phase: str, left: str
) -> None:
    done = child(1, phase="Completed", pods={"succeeded": 8})
    raw = hyperjob(suspend=True, status={"state": {"phase": "Running"}})
    decided = plan(replace(observed(raw, *objects, *done, clusters=(A,)), **known))
    state = decided.status["state"]
    text = f"suspended with 1 of 2 sub-jobs ended{left}"
    assert (state["phase"], state["message"]) == (phase, text)


def test_the_last_pods_that_nobody_shows_are_waited_for() -> None:
    raw = hyperjob(suspend=True)
    ending = {"hj-trainer-0": NOW + timedelta(seconds=9)}
    waits = plan(replace(observed(raw, clusters=(A,)), ending=ending)).requeue_after
    assert waits == timedelta(seconds=9)


@pytest.mark.parametrize(
    ("previous", "phase"), [("Running", "Degraded"), ("Degraded", "Degraded"), ("", "Starting")]
)
def test_degraded_lasts_until_enough_sub_jobs_run_again(previous: str, phase: str) -> None:
    raw = hyperjob(status={"state": {"phase": previous}} if previous else {})
    objects = [*child(0, "Running"), *child(1, "Pending")]
    first = derived(raw, *objects, clusters=(A,))
    second = derived(hyperjob(status=first), *objects, clusters=(A,))
    assert first["state"]["phase"] == second["state"]["phase"] == phase
    whole = [*child(0, "Running"), *child(1, "Running")]
    third = derived(hyperjob(status=second), *whole, clusters=(A,))
    assert third["state"]["phase"] == "Running"


def test_a_sub_job_that_is_being_deleted_counts_for_no_cluster() -> None:
    leaving = [job("hj-trainer-1", deleting=True), policy("hj-trainer-1", cluster="b")]
    status = derived(hyperjob(), *child(0, "Running"), *leaving, clusters=(A, cluster("b")))
    second = status["jobs"][1]
    assert (second["phase"], second["cluster"]) == ("Unplaced", "b")
    assert [each["name"] for each in status["clusters"]] == ["a"]
    assert status["clusterNames"] == "a"
