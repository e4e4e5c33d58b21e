"""Definitions: what an upgrade would lose, and what the stand-ins for Volcano's let through."""

from typing import Any

import pytest

from hyperjob_core.kube.resources import QUEUES, VCJOBS
from hyperjob_install.definitions import definitions, lost_fields, missing_fields
from hyperjob_install.definitions import permissive as permit
from hyperjob_install.objects import Item
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema
from tests.support.structural import crds
from tests.unit.install.observations import definition

Object = dict[str, Any]


def stand_in(plural: str) -> Item:
    (found,) = (item for item in definitions() if item.name.startswith(f"{plural}."))
    return found


def schema(plural: str) -> Object:
    (version,) = stand_in(plural).object["spec"]["versions"]
    found: Object = version["schema"]["openAPIV3Schema"]
    return found


def vcjob(**spec: Any) -> Object:
    return {**VCJOBS.head, "metadata": {"name": "x", "namespace": "ml"}, "spec": spec}


FUTURE = {
    "a new field of the job": ("jobs", vcjob(future={"deep": [1, {"er": True}]})),
    "a new field of a task": ("jobs", vcjob(tasks=[{"name": "a", "future": "x"}])),
    "a new field of a pod": (
        "jobs",
        vcjob(tasks=[{"template": {"spec": {"containers": [{"name": "c", "future": 1}]}}}]),
    ),
    "a new policy": ("jobs", vcjob(policies=[{"event": "Quantum", "action": "Entangle"}])),
    "a new mode": ("jobs", vcjob(networkTopology={"mode": "wormhole"})),
    "a new phase": ("jobs", {**vcjob(), "status": {"state": {"phase": "Dreaming"}, "new": 1}}),
    "a name that we would refuse": ("jobs", vcjob(tasks=[{"name": "UPPER_case"}])),
    "a new state of a queue": (
        "queues",
        {"metadata": {"name": "q"}, "spec": {"weight": 0, "new": 1}, "status": {"state": "Ajar"}},
    ),
    "a new field of a command": (
        "commands",
        {
            "metadata": {"name": "c", "namespace": "ml"},
            "action": "Anything",
            "target": {"apiVersion": "v1", "kind": "Job", "name": "x", "uid": "1", "new": 2},
        },
    ),
}


@pytest.mark.parametrize("case", FUTURE)
def test_a_stand_in_lets_a_newer_volcano_through(case: str) -> None:
    plural, obj = FUTURE[case]
    structural = StructuralSchema.build(schema(plural))
    before = repr(obj)
    assert structural.prune(obj) == []
    assert repr(obj) == before
    assert structural.validate(obj) == []


def test_a_stand_in_still_knows_types() -> None:
    structural = StructuralSchema.build(schema("jobs"))
    assert structural.validate(vcjob(minAvailable="three"))
    assert structural.validate(vcjob(tasks={}))


def test_a_stand_in_still_gives_volcanos_defaults() -> None:
    job = vcjob()
    StructuralSchema.build(schema("jobs")).prepare(job)
    assert (job["spec"]["queue"], job["spec"]["maxRetry"]) == ("default", 3)


def test_the_packaged_definitions_are_not_changed_on_the_way() -> None:
    original = crds()["Queue"]
    before = repr(original)
    assert permit(original) != original
    assert repr(original) == before


def test_our_own_definition_is_as_strict_as_its_file() -> None:
    ours = definitions()[0].object
    assert ours["spec"] == crds()["HyperJob"]["spec"]


def widen(*path: str) -> Object:
    """Put a field into the HyperJob's definition."""
    live = definition("HyperJob")
    node = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path[:-1]:
        node = node["properties"][name]
        node = node.get("items", node)
    node["properties"][path[-1]] = {"type": "object", "properties": {"child": {"type": "string"}}}
    return live


LOST = {
    "spec.future": ("spec", "future"),
    "status.future": ("status", "future"),
    "spec.replicatedJobs.future": ("spec", "replicatedJobs", "future"),
}


@pytest.mark.parametrize("path", LOST)
def test_a_field_that_would_be_lost_is_named_once(path: str) -> None:
    assert lost_fields(widen(*LOST[path])) == [path]


def test_a_definition_that_keeps_unknown_fields_lacks_nothing() -> None:
    live = definition("Job")
    spec = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {}
    assert missing_fields(live, VCJOBS)
    spec["x-kubernetes-preserve-unknown-fields"] = True
    assert missing_fields(live, VCJOBS) == []


def test_a_missing_parent_includes_its_fields() -> None:
    live = definition("Queue")
    schema = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "properties" in schema["properties"]["spec"]["properties"]["guarantee"]
    del schema["properties"]["spec"]["properties"]["guarantee"]
    assert missing_fields(live, QUEUES) == ["spec.guarantee"]
    del live["spec"]["versions"][0]["schema"]
    assert missing_fields(live, QUEUES) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert missing_fields({"spec": {}}, QUEUES)[:2] == ["apiVersion", "kind"]


def test_fields_in_lists_and_maps_are_found() -> None:
    live = definition("Queue")
    spec = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["extendClusters"]["items"]["properties"]["weight"]
    assert missing_fields(live, QUEUES) == ["spec.extendClusters.weight"]
