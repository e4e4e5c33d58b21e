"""Cluster status made of nodes and pods, held against a recording."""

import pytest

from hyperjob_sandbox.karmada import clusterstatus
from tests.support.karmadarecording import RECORDED

AMOUNTS = {"cpu": "256", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "1000"}


def nodes(count=4):
    return [
        {
            "metadata": {"name": f"n{i}"},
            "status": {
                "allocatable": AMOUNTS,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for i in range(count)
    ]


def pods(count, *, node="", phase="Pending", requests=None):
    spec = {"containers": [{"name": "c", "resources": {"requests": requests or {}}}]}
    if node:
        spec["nodeName"] = node
    return [{"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}}] * count


GPU = {"nvidia.com/gpu": "1"}
BIG = {"nvidia.com/gpu": "2", "cpu": "1", "memory": "1Gi"}
CASES = {
    # 32 pods of one GPU on the nodes and six waiting, as when the recording was made
    "member1": [
        pod for node in range(4) for pod in pods(8, node=f"n{node}", phase="Running", requests=GPU)
    ]
    + pods(6, requests=GPU)
    + pods(3, node="n0", phase="Succeeded", requests=GPU),
    # six pods of two GPUs with cpu and memory, over three nodes
    "member2": [pod for node in range(3) for pod in pods(2, node=f"n{node}", requests=BIG)],
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_cluster_status_equals_the_recorded_one(name):
    recorded = RECORDED["clusters"][name]
    joined = {"metadata": recorded["metadata"], "spec": recorded["spec"]}
    status = clusterstatus.cluster_status(
        joined,
        version="v1.36.2",
        apis=[],
        nodes=nodes(),
        pods=CASES[name],
        now="2026-11-21T03:42:19Z",
    )
    del status["apiEnablements"]  # the recording leaves them out
    assert status == recorded["status"]


def test_the_default_models_equal_the_recorded_ones():
    models = RECORDED["clusters"]["member1"]["spec"]["resourceModels"]
    assert clusterstatus.default_resource_models() == models


def test_a_cluster_that_does_not_answer_keeps_what_was_collected():
    recorded = RECORDED["clusters"]["member1"]
    status = clusterstatus.failing_status(recorded, now="later")
    assert status["resourceSummary"] == recorded["status"]["resourceSummary"]
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert ready == {
        "lastTransitionTime": "later",
        "message": "cluster is not reachable",
        "reason": "ClusterNotReachable",
        "status": "False",
        "type": "Ready",
    }


def test_a_new_cluster_that_does_not_answer_has_no_resource_summary():
    status = clusterstatus.failing_status({"spec": {}}, now="now")
    assert set(status) == {"conditions"}


def test_api_enablements_are_sorted_and_without_subresources():
    lists = [
        {
            "groupVersion": "v1",
            "resources": [
                {"name": "pods", "kind": "Pod"},
                {"name": "pods/status", "kind": "Pod"},
                {"name": "nodes", "kind": "Node"},
            ],
        },
        {"groupVersion": "apps/v1", "resources": []},
    ]
    assert clusterstatus.api_enablements(lists) == [
        {"groupVersion": "apps/v1", "resources": []},
        {
            "groupVersion": "v1",
            "resources": [{"name": "nodes", "kind": "Node"}, {"name": "pods", "kind": "Pod"}],
        },
    ]
