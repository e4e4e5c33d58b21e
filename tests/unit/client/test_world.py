"""The world of a plan and its changes: queues, clusters, drained clusters, needed objects."""

from datetime import UTC, datetime
from typing import Any

import pytest

from hyperjob.client.plan.reading import read_world
from hyperjob.client.plan.world import World
from hyperjob_core.api.names import CONTROLLER_SETTINGS, LABEL_HYPERJOB, QUEUE_ADMISSION
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.kube.resources import (
    CLUSTERS,
    DEPLOYMENTS,
    HYPERJOBS,
    HYPERNODES,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import ApiServer, refusal
from tests.unit.cli.fleet import Fleet
from tests.unit.cli.objects import GPU, cluster, hyperjob, queue, sub_job

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]


def world(objects: dict[Resource, Any] | None = None, **more: Any) -> World:
    return World(now=NOW, objects=objects or {}, **more)


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "ml"}, **more}


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] for each in found]


def test_queues_keep_the_state_that_the_control_plane_has_and_new_ones_are_open() -> None:
    closed = {**queue(), "status": {"state": "Closed"}}
    other = {**queue(), "metadata": {"name": "other"}}
    before = world({QUEUES: [closed, other]})
    spec = {"metadata": {"name": "default"}, "spec": {"weight": 9}}
    new = {"metadata": {"name": "new"}}
    found = before.with_queues([spec, new, {"metadata": {}}, {}])
    states = {each["metadata"]["name"]: each["status"]["state"] for each in found.of(QUEUES)}
    assert states == {"other": "Open", "default": "Closed", "new": "Open"}
    assert found.of(QUEUES)[1]["spec"] == {"weight": 9}
    assert before.of(QUEUES) == [closed, other]
    unreadable = world({QUEUES: []}, unreadable=frozenset({QUEUES}))
    assert unreadable.with_queues([spec]) is unreadable


def test_an_idle_cluster_gets_the_use_of_the_one_that_it_replaces() -> None:
    view: Any = object()
    before = world(
        {CLUSTERS: [cluster("east", gpus=8, used=5), cluster("west")]},
        views={"east": view, "west": view},
    )
    idle = [cluster("east", gpus=99), cluster("north", gpus=4)]
    for each in idle:
        del each["status"]["resourceSummary"]["allocated"]
    found = before.with_clusters(idle, {"east": view, "north": view})
    summaries = {
        each["metadata"]["name"]: each["status"]["resourceSummary"] for each in found.of(CLUSTERS)
    }
    assert list(summaries) == ["west", "east", "north"]
    assert summaries["east"]["allocatable"][GPU] == "99"
    assert summaries["east"]["allocated"] == {GPU: "5"}
    assert "allocated" not in summaries["north"]
    assert found.views.keys() == {"west", "north"}, "the nodes of a replaced cluster are unknown"
    assert before.with_clusters([]).views == before.views


def vcjob(name: str, *, phase: str = "Running", ours: bool = True) -> Object:
    labels = {LABEL_HYPERJOB: "llm"} if ours else {}
    made = named(name, status={"state": {"phase": phase}})
    made["metadata"]["labels"] = labels
    return made


def binding(name: str, *clusters: str, kind: str = "Job") -> Object:
    version = "batch.volcano.sh/v1alpha1" if kind == "Job" else "apps/v1"
    resource = {"apiVersion": version, "kind": kind, "namespace": "ml", "name": name}
    spec = {"resource": resource, "clusters": [{"name": each} for each in clusters]}
    return named(f"{name}-{kind.lower()}", spec=spec)


def policy(name: str, cluster: str) -> Object:
    return named(name, spec={"placement": {"clusterAffinity": {"clusterNames": [cluster]}}})


def test_a_drained_cluster_loses_its_running_sub_jobs_and_gets_a_taint() -> None:
    jobs = [
        vcjob("llm-trainer-0"),
        vcjob("llm-trainer-1"),
        vcjob("pinned"),
        vcjob("done", phase="Completed"),
        vcjob("other", ours=False),
        vcjob("both"),
    ]
    before = world({
        CLUSTERS: [cluster("east"), cluster("west")],
        VCJOBS: jobs,
        PROPAGATION_POLICIES: [
            policy("pinned", "east"), policy("llm-trainer-1", "west"), policy("done", "east"),
        ],
        RESOURCE_BINDINGS: [
            binding("llm-trainer-0", "east"),
            binding("llm-trainer-0", "east", kind="Deployment"),
            binding("llm-trainer-1", "west"),
            binding("done", "east"),
            binding("both", "east", "west"),
        ],
        HYPERJOBS: [
            hyperjob(
                "Running",
                sub_job(0, admitted=True, cluster="east"),
                sub_job(1, admitted=True, cluster="west"),
            ),
            named("new", spec={}),
        ],
    })  # fmt: skip
    assert before.without(()) is before
    found = before.without({"east"})
    assert names(found.of(VCJOBS)) == ["llm-trainer-1", "done", "other", "both"]
    assert names(found.of(PROPAGATION_POLICIES)) == ["llm-trainer-1", "done"]
    assert names(found.of(RESOURCE_BINDINGS)) == [
        *("llm-trainer-0-deployment", "llm-trainer-1-job", "done-job", "both-job")
    ]
    first, second = found.of(HYPERJOBS)[0]["status"]["jobs"]
    assert (first["admitted"], first["cluster"]) == (False, "")
    assert (second["admitted"], second["cluster"]) == (True, "west")
    assert found.of(HYPERJOBS)[1] == named("new", spec={})
    east, west = found.of(CLUSTERS)
    assert east["spec"]["taints"] == [{"key": "drained", "effect": "NoExecute"}]
    assert "spec" not in west
    assert before.of(HYPERJOBS)[0]["status"]["jobs"][0]["admitted"] is True


def test_given_objects_count_for_kinds_that_are_known() -> None:
    before = world(
        there={("ml", "Secret"): {"a": ""}, ("", "PriorityClass"): {}},
        namespace="ml",
    )
    found = before.with_needed([
        {"kind": "Secret", "metadata": {"name": "b"}},
        {"kind": "Secret", "metadata": {"name": "c", "namespace": "ml"}},
        {"kind": "Secret", "metadata": {"name": "d", "namespace": "other"}},
        {"kind": "ConfigMap", "metadata": {"name": "e"}},
        {"kind": "PriorityClass", "metadata": {"name": "f"}},
        {"kind": "Deployment", "metadata": {"name": "g"}},
    ])  # fmt: skip
    assert found.there == {
        ("ml", "Secret"): {"a": "", "b": "", "c": ""},
        ("", "PriorityClass"): {"f": ""},
    }


async def read(server: ApiServer) -> tuple[World, list[str]]:
    said: list[str] = []
    made = await read_world(server.kube, namespace="ml", left_out=said.append)
    return made, said


async def test_a_world_has_what_the_user_may_read_and_names_what_is_left_out() -> None:
    server = ApiServer()
    server.put(CLUSTERS, cluster("east"))
    server.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1})
    found, said = await read(server)
    assert said == []
    assert names(found.of(CLUSTERS)) == ["east"]
    assert found.options.queue_admission is QueueAdmission.BUILTIN
    assert found.there["", "PriorityClass"] == {"high": ""}
    assert (found.unreadable, found.namespace, found.of(DEPLOYMENTS)) == (frozenset(), "ml", ())
    server.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden", "no") if resource in (QUEUES, PRIORITY_CLASSES) else None
    )
    less, said = await read(server)
    assert less.unreadable == {QUEUES}
    assert less.of(QUEUES) == []
    assert ("", "PriorityClass") not in less.there
    assert said == [
        "queues.scheduling.volcano.sh left out: Error from server (Forbidden): no",
        "priorityclasses.scheduling.k8s.io left out: Error from server (Forbidden): no",
    ]


async def test_a_world_names_the_clusters_whose_hypernodes_are_not_known() -> None:
    server, metadata = Fleet(), {"name": "hyperjob-controller", "namespace": "karmada-system"}
    annotations = {CONTROLLER_SETTINGS: '{"members": "nodes"}'}
    server.put(LEASES, {"metadata": {**metadata, "annotations": annotations}})
    server.put(CLUSTERS, cluster("east"))
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": "(?i)n"}}}]
    east = server.members["east"] = ApiServer()
    east.put(HYPERNODES, {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}})
    east.put(NODES, {"metadata": {"name": "n1"}})
    found, said = await read(server)
    assert [each.name for each in found.views["east"].nodes] == ["n1"]
    (line,) = said
    assert line.startswith("HyperNodes of cluster east left out, as by the controller: ")
    assert line.endswith("the pattern '(?i)n' cannot be read at sign 2")


async def test_the_queue_admission_is_that_of_the_lease_or_follows_volcano_globals_webhook() -> (
    None
):
    server = ApiServer()
    rule = {"apiGroups": ["work.karmada.io"], "resources": ["resourcebindings"]}
    hook = {"clientConfig": {"url": "https://h/resourcebindings/mutate"}, "rules": [rule]}
    configuration = {"metadata": {"name": "vg"}, "webhooks": [hook]}
    assert queues_bindings([configuration])
    server.put(MUTATING_WEBHOOKS, configuration)
    server.put(DEPLOYMENTS, named("web"))
    found, _ = await read(server)
    assert found.options.queue_admission is QueueAdmission.VOLCANO_GLOBAL
    assert names(found.of(DEPLOYMENTS)) == ["web"], "they use its quota too"
    server.put(
        LEASES,
        {
            "metadata": {
                "name": "hyperjob-controller",
                "namespace": "karmada-system",
                "annotations": {QUEUE_ADMISSION: "none"},
            }
        },
    )
    found, _ = await read(server)
    assert found.options.queue_admission is QueueAdmission.NONE
    server.remove(LEASES, "karmada-system/hyperjob-controller")
    server.remove(MUTATING_WEBHOOKS, "vg")
    server.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden", "no") if resource in (LEASES, MUTATING_WEBHOOKS) else None
    )
    found, said = await read(server)
    assert found.options.queue_admission is QueueAdmission.VOLCANO_GLOBAL, "it may be there"
    assert [each.partition(" ")[0] for each in said] == [
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    ]


async def test_without_clusters_there_is_no_plan() -> None:
    server = ApiServer()
    server.fails = lambda _verb, resource, _name: (
        refusal(403, "Forbidden", "no clusters") if resource is CLUSTERS else None
    )
    with pytest.raises(Exception, match="no clusters"):
        await read(server)
