"""The snapshot of a plan: what is read, and what the files of a plan add."""

from datetime import UTC, datetime
from typing import Any

from hyperjob.client.plan.snapshot import Snapshot, read_snapshot
from hyperjob_core.api.names import QUEUE_ADMISSION
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.kube.resources import (
    CLUSTERS,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    PRIORITY_CLASSES,
    QUEUES,
    Resource,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.apiserver import ApiServer, refusal
from tests.unit.cli.objects import cluster, queue

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]


def snapshot(objects: dict[Resource, Any] | None = None, **more: Any) -> Snapshot:
    return Snapshot(now=NOW, objects=objects or {}, **more)


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "ml"}, **more}


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] for each in found]


def test_queues_keep_the_state_that_the_control_plane_has_and_new_ones_are_open() -> None:
    closed = {**queue(), "status": {"state": "Closed"}}
    other = {**queue(), "metadata": {"name": "other"}}
    before = snapshot({QUEUES: [closed, other]})
    spec = {"metadata": {"name": "default"}, "spec": {"weight": 9}}
    new = {"metadata": {"name": "new"}}
    found = before.with_queues([spec, new, {"metadata": {}}, {}])
    states = {each["metadata"]["name"]: each["status"]["state"] for each in found.of(QUEUES)}
    assert states == {"other": "Open", "default": "Closed", "new": "Open"}
    assert found.of(QUEUES)[1]["spec"] == {"weight": 9}
    assert before.of(QUEUES) == [closed, other]
    unreadable = snapshot({QUEUES: []}, unreadable=frozenset({QUEUES}))
    assert unreadable.with_queues([spec]) is unreadable


def test_given_objects_count_for_kinds_that_are_known() -> None:
    before = snapshot(
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


async def read(server: ApiServer) -> tuple[Snapshot, list[str]]:
    said: list[str] = []
    made = await read_snapshot(server.kube, namespace="ml", left_out=said.append)
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
