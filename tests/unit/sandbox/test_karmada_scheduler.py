"""Which clusters a binding gets, and the words when it gets none."""

import json
from copy import deepcopy

import pytest

from hyperjob_sandbox.karmada.clusterstatus import default_resource_models
from hyperjob_sandbox.karmada.scheduler import applied_placement, schedule
from tests.support.karmadarecording import RECORDED

ENABLED = [
    {
        "groupVersion": "batch.volcano.sh/v1alpha1",
        "resources": [{"name": "jobs", "kind": "Job"}],
    }
]


def cluster(name, *, free=None, taints=(), models=False, apis=ENABLED, **spec):
    allocatable = {"pods": "1k", "cpu": "100", "nvidia.com/gpu": str(free or 0)}
    return {
        "metadata": {"name": name, "labels": {"name": name}},
        "spec": {
            "taints": list(taints),
            "resourceModels": default_resource_models() if models else [],
            **spec,
        },
        "status": {
            "apiEnablements": list(apis),
            "resourceSummary": {"allocatable": allocatable},
        },
    }


def binding(placement, *, clusters=(), replicas=0, request=None, status=None, **spec):
    wanted = {
        "resource": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"},
        "placement": placement,
        **spec,
    }
    if clusters:
        wanted["clusters"] = list(clusters)
    if replicas:
        wanted["replicas"] = replicas
        wanted["replicaRequirements"] = {"resourceRequest": request or {}}
    return {"spec": wanted, "status": status or {}}


def pinned(*names):
    return {
        "clusterAffinities": [{"affinityName": "hyperjob-gang", "clusterNames": list(names)}],
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    }


def chosen(decision):
    return [each["name"] for each in decision.clusters or ()]


def test_the_recorded_placements_give_the_recorded_results():
    members = [cluster("member1"), cluster("member2")]
    plain = schedule(RECORDED["plain"]["binding"]["created"], members)
    assert plain.clusters == RECORDED["plain"]["binding"]["placed"]["spec"]["clusters"]
    gated = schedule(RECORDED["gated"]["binding"]["created"], members)
    waiting = RECORDED["gated"]["binding"]["waiting"]
    assert gated.clusters == waiting["spec"]["clusters"]
    assert gated.affinity == waiting["status"]["schedulerObservingAffinityName"]
    status, reason, message = gated.condition
    recorded = waiting["status"]["conditions"][0]
    assert (status, reason, message) == (
        recorded["status"],
        recorded["reason"],
        recorded["message"],
    )


@pytest.mark.parametrize(
    ("scene", "state"), [("plain", "placed"), ("gated", "waiting"), ("nofit", "refused")]
)
def test_the_applied_placement_annotation_says_what_the_recorded_one_says(scene, state):
    recorded = RECORDED[scene]["binding"][state]
    text = recorded["metadata"]["annotations"]["policy.karmada.io/applied-placement"]
    assert json.loads(applied_placement(recorded["spec"]["placement"])) == json.loads(text)


def test_no_cluster_fit_is_told_in_the_recorded_words():
    refused = RECORDED["nofit"]["binding"]["refused"]["status"]["conditions"][0]
    released = RECORDED["nofit"]["binding"]["released"]
    decision = schedule(released, [cluster("member1"), cluster("member2")])
    assert decision.condition == (refused["status"], refused["reason"], refused["message"])
    assert decision.clusters == []


NOT_READY = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([], "0/0 clusters are available: no cluster exists."),
        (
            [cluster("a", taints=[NOT_READY]), cluster("b")],
            (
                "0/2 clusters are available: 1 cluster(s) did not match the placement cluster "
                "affinity constraint, 1 cluster(s) had untolerated taint "
                "{cluster.karmada.io/not-ready:NoSchedule}."
            ),
        ),
        (
            [cluster("a", apis=())],
            "0/1 clusters are available: 1 cluster(s) did not have the API resource.",
        ),
    ],
)
def test_every_refusal_is_counted(members, why):
    decision = schedule(binding(pinned("a")), members)
    assert decision.condition == ("False", "NoClusterFit", why)


def test_a_cluster_that_holds_the_job_already_keeps_it_through_a_taint():
    lost = cluster("a", taints=[NOT_READY])
    decision = schedule(binding(pinned("a"), clusters=[{"name": "a"}]), [lost])
    assert chosen(decision) == ["a"]


def test_groups_are_tried_in_order_and_the_one_observed_comes_first():
    placement = {
        "clusterAffinities": [
            {"affinityName": "first", "clusterNames": ["a"]},
            {"affinityName": "second", "clusterNames": ["b"]},
        ]
    }
    members = [cluster("a"), cluster("b")]
    assert schedule(binding(placement), members).affinity == "first"
    assert schedule(binding(placement), members[1:]).affinity == "second"
    observed = binding(placement, status={"schedulerObservingAffinityName": "second"})
    assert schedule(observed, members).affinity == "second"


def test_duplicated_with_replicas_names_them_and_ignores_capacity():
    job = binding(pinned("a"), replicas=64, request={"nvidia.com/gpu": "1"})
    decision = schedule(job, [cluster("a", free=1)])
    assert decision.clusters == [{"name": "a", "replicas": 64}]


def divided(**more):
    return {
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Aggregated",
        },
        **more,
    }


@pytest.mark.parametrize(
    ("affinity", "names"),
    [
        ({"labelSelector": {"matchLabels": {"name": "a"}}}, ["a"]),
        ({"exclude": ["a"]}, ["b"]),
    ],
)
def test_cluster_affinity_selects_by_label_and_name(affinity, names):
    members = [cluster("a", region="east", zones=["z1"]), cluster("b", region="west")]
    job = binding({"clusterAffinity": affinity})
    assert chosen(schedule(deepcopy(job), members)) == names


def test_divided_replicas_are_refused_and_a_job_without_any_goes_to_the_first_cluster_by_name():
    members = [cluster("b", free=16), cluster("a", free=16)]
    job = binding(divided(), replicas=8, request={"nvidia.com/gpu": "1"})
    decision = schedule(job, members)
    assert decision.condition == (
        "False",
        "SchedulerError",
        "the embedded Karmada divides no replicas: use Duplicated",
    )
    assert decision.clusters is None
    assert chosen(schedule(binding(divided()), members)) == ["a"]


def test_a_field_selector_is_refused_where_it_would_have_been_overlooked():
    affinity = {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "Exists"}]}}
    decision = schedule(binding({"clusterAffinity": affinity}), [cluster("a")])
    assert decision.condition[:2] == ("False", "SchedulerError")
    assert "no fieldSelector" in decision.condition[2]
