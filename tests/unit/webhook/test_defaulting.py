"""Defaulting leaves alone what it does not add; what it adds is in the corpus."""

import copy
from typing import Any

import pytest

from hyperjob_rules.defaulting import default
from hyperjob_rules.patch import diff


def hyperjob(**template: Any) -> dict[str, Any]:
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": "a"},
        "spec": {"replicatedJobs": [{"name": "b", "templateSpec": template}]},
    }


COMPLETE = default(hyperjob(tasks=[{"name": "c", "replicas": 1, "template": {}}]))


def test_what_is_complete_comes_back_as_the_same_object():
    assert default(COMPLETE) is COMPLETE


def test_what_is_being_deleted_comes_back_as_the_same_object():
    leaving = hyperjob(tasks=[{}])
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert default(leaving) is leaving


def test_the_input_stays_as_it_is():
    before = hyperjob(tasks=[{"replicas": 2, "template": {"spec": {"hostNetwork": True}}}])
    kept = copy.deepcopy(before)
    default(before)
    assert before == kept


def test_only_the_way_to_a_change_is_copied():
    before = hyperjob(tasks=[{"name": "c", "replicas": 1, "template": {"spec": {"x": [1]}}}])
    after = default(before)
    assert after["metadata"] is before["metadata"]
    task = after["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]
    assert (
        task["template"]
        is before["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]
    )


def test_the_patch_names_each_field_once_and_alone():
    before = hyperjob(queue="", maxRetry=0, tasks=[{"name": "c", "replicas": 1}])
    assert diff(before, default(before)) == [
        {"op": "replace", "path": "/spec/replicatedJobs/0/templateSpec/queue", "value": "default"},
        {"op": "replace", "path": "/spec/replicatedJobs/0/templateSpec/maxRetry", "value": 3},
        {
            "op": "add",
            "path": "/spec/replicatedJobs/0/templateSpec/tasks/0/minAvailable",
            "value": 1,
        },
        {"op": "add", "path": "/spec/replicatedJobs/0/templateSpec/tasks/0/maxRetry", "value": 3},
        {
            "op": "add",
            "path": "/spec/replicatedJobs/0/templateSpec/schedulerName",
            "value": "volcano",
        },
        {"op": "add", "path": "/spec/replicatedJobs/0/templateSpec/minAvailable", "value": 1},
        {"op": "add", "path": "/spec/replicatedJobs/0/replicas", "value": 1},
        {"op": "add", "path": "/spec/replicatedJobs/0/clusterPolicy", "value": "Preferred"},
    ]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"spec": None},
        {"spec": "x"},
        {"spec": {"replicatedJobs": "x"}},
        {"spec": {"replicatedJobs": ["x", None, 1]}},
        {"metadata": "x"},
    ],
)
def test_what_is_no_hyperjob_comes_back_as_it_is(raw: dict[str, Any]):
    assert default(raw) is raw


@pytest.mark.parametrize(
    "wrong",
    [
        {"tasks": "x"},
        {"tasks": ["x"]},
        {"tasks": [{"replicas": "4"}]},
        {"tasks": [{"replicas": -4}]},
        {"tasks": [{"replicas": 2**31}]},
        {"tasks": [{"replicas": 4, "minAvailable": "x"}]},
        {"plugins": ["mpi"]},
        {"networkTopology": "x"},
        {"tasks": [{"template": {"spec": {"containers": [{"resources": {"requests": "x"}}]}}}]},
        {"tasks": [{"template": {"spec": {"containers": [{"resources": {"limits": "x"}}]}}}]},
    ],
)
def test_a_wrong_type_is_left_for_validation_to_name(wrong: dict[str, Any]):
    template = default(hyperjob(**wrong))["spec"]["replicatedJobs"][0]["templateSpec"]
    kept = wrong["tasks"] if isinstance(wrong.get("tasks"), str) else None
    assert template.get("minAvailable") is None
    if kept:
        assert template["tasks"] == kept
    for name in ("plugins", "networkTopology"):
        assert template.get(name) == wrong.get(name)
