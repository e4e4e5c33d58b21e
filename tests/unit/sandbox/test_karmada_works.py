"""Works and the statuses made of them, held against a recording of the real Karmada."""

from copy import deepcopy

import pytest

from hyperjob_sandbox.karmada import interpreter, works
from hyperjob_sandbox.karmada.dispatch import binding_status
from hyperjob_sandbox.karmada.execution import retain
from hyperjob_sandbox.objects import with_conditions
from tests.support.karmadarecording import RECORDED, without_server_fields

NOW = "2026-11-21T03:43:17Z"


def id_of(work):
    return work["metadata"]["labels"]["work.karmada.io/permanent-id"]


@pytest.mark.parametrize(
    ("scene", "template", "binding"),
    [("plain", "claimed", "scheduled"), ("gated", "template", "waiting")],
)
def test_a_new_work_equals_the_recorded_one(scene, template, binding):
    recorded = RECORDED[scene]
    wanted = without_server_fields(recorded["work"]["created"])
    work = works.build_work(
        recorded[template],
        cluster="member1",
        work_id=id_of(recorded["work"]["created"]),
        binding=recorded["binding"][binding],
    )
    assert work == wanted


def test_syncing_an_unchanged_work_changes_nothing():
    recorded = RECORDED["plain"]
    live = recorded["work"]["applied"]
    desired = works.build_work(
        recorded["claimed"],
        cluster="member1",
        work_id=id_of(live),
        binding=recorded["binding"]["scheduled"],
    )
    assert works.sync_work(live, desired) == live


def test_time_to_live_and_what_the_server_fills_in_never_reach_a_member():
    template = deepcopy(RECORDED["plain"]["claimed"])
    template["spec"]["ttlSecondsAfterFinished"] = 60
    template["status"] = {"state": {"phase": "Running"}}
    pruned = works.prune(template)
    assert "ttlSecondsAfterFinished" not in pruned["spec"]
    assert "status" not in pruned
    assert set(pruned["metadata"]) == {"annotations", "labels", "name", "namespace"}


@pytest.mark.parametrize(
    ("scene", "state", "conditions"),
    [
        ("plain", "dispatching", [("Dispatching", works.DISPATCHING)]),
        ("plain", "applied", [("Dispatching", works.DISPATCHING), ("Applied", works.APPLIED)]),
        ("gated", "suspended", [("Dispatching", works.SUSPENDED)]),
    ],
)
def test_conditions_of_works_equal_recorded_ones(scene, state, conditions):
    wanted = RECORDED[scene]["work"][state]["status"]["conditions"]
    made = {}
    for (kind, value), recorded in zip(conditions, wanted, strict=True):
        now = recorded["lastTransitionTime"]
        made = with_conditions(made, now=now, **{kind: value})
    assert made["conditions"] == wanted


def test_a_conditions_time_moves_only_when_its_status_flips():
    first = with_conditions({}, now="one", Applied=works.APPLIED)
    same = with_conditions(first, now="two", Applied=("True", "Other", "text"))
    flipped = with_conditions(same, now="three", Applied=("False", "Other", "text"))
    times = [each["conditions"][0]["lastTransitionTime"] for each in (first, same, flipped)]
    assert times == ["one", "one", "three"]
    assert same["conditions"][0]["reason"] == "Other"


@pytest.mark.parametrize("scene", ["completes", "fails", "pytorch"])
def test_what_a_work_says_of_a_vcjob_equals_the_recording(scene):
    job = RECORDED[scene]["job"]
    for recorded in RECORDED[scene]["manifestStatuses"]:
        observed = {**job, "status": recorded["status"]}
        assert works.manifest_status(observed, ordinal=0) == recorded


STAGES = {
    # state of the binding: the state of its only Work at that time
    "dispatched": "dispatching",
    "applied": "applied",
    "running": "running",
    "completed": "completed",
}


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_bindings_status_follows_its_works_as_recorded(stage):
    recorded = RECORDED["plain"]
    wanted = recorded["binding"][stage]
    before = deepcopy(wanted)
    del before["status"]["aggregatedStatus"]
    status = binding_status(before, [recorded["work"][STAGES[stage]]], now=NOW)
    if stage == "applied":
        # the recorded Work had told of health already when the binding was written
        assert status["aggregatedStatus"][0].pop("health") == "Unknown"
        wanted = deepcopy(wanted)
        wanted["status"]["aggregatedStatus"][0].pop("health")
    assert status == wanted["status"]


def test_a_failed_apply_takes_the_status_away():
    recorded = RECORDED["plain"]
    work = deepcopy(recorded["work"]["running"])
    failed = works.apply_failed("no such queue")
    work["status"] = with_conditions(work["status"], now=NOW, Applied=failed)
    status = binding_status(recorded["binding"]["running"], [work], now=NOW)
    message = "Failed to apply all manifests (0/1): no such queue"
    assert status["aggregatedStatus"] == [
        {"clusterName": "member1", "health": "Unknown", "appliedMessage": message}
    ]
    template = recorded["claimed"]
    assert interpreter.aggregate_status(template, status["aggregatedStatus"]) is None


def test_a_work_that_is_being_deleted_says_nothing():
    recorded = RECORDED["plain"]
    work = deepcopy(recorded["work"]["running"])
    work["metadata"]["deletionTimestamp"] = NOW
    status = binding_status(recorded["binding"]["running"], [work], now=NOW)
    assert "aggregatedStatus" not in status
    assert status["conditions"][1]["reason"] == "FullyAppliedFailed"


def test_one_clusters_status_becomes_the_templates_verbatim():
    recorded = RECORDED["plain"]
    items = recorded["binding"]["running"]["status"]["aggregatedStatus"]
    wanted = recorded["reflected"]["running"]["status"]
    assert interpreter.aggregate_status(recorded["claimed"], items) == wanted


def test_a_queues_status_is_summed_as_recorded():
    queue = RECORDED["queue"]
    allocated = {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "22", "pods": "19"}
    items = [
        {"clusterName": name, "status": {"allocated": allocated, "state": "Open"}}
        for name in ("member1", "member2")
    ]
    assert interpreter.aggregate_status(queue, items) == queue["status"]


def test_what_a_member_added_is_kept_and_what_was_propagated_once_is_dropped():
    observed = {
        "metadata": {
            "resourceVersion": "7",
            "finalizers": ["member/keeps"],
            "labels": {"old": "1", "member": "1"},
            "annotations": {
                "resourcetemplate.karmada.io/managed-labels": "old,kept",
                "resourcetemplate.karmada.io/managed-annotations": "gone",
                "gone": "x",
                "member": "y",
            },
        }
    }
    desired = {"metadata": {"labels": {"kept": "2"}, "annotations": {"new": "z"}}}
    meta = retain(desired, observed)["metadata"]
    assert meta["resourceVersion"] == "7"
    assert meta["finalizers"] == ["member/keeps"]
    assert meta["labels"] == {"kept": "2", "member": "1"}
    assert {"new", "member"} <= set(meta["annotations"])
    assert "gone" not in meta["annotations"]
