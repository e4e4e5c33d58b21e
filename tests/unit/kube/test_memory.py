"""The API server in memory answers the controller's client as an API server does."""

from contextlib import aclosing

import pytest

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.patches import patched
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS
from hyperjob_core.virtualtime import now, run
from tests.support.virtually import virtually

HYPERJOB = {"metadata": {"namespace": "a", "name": "one"}, "spec": {"suspend": False}}


@virtually
async def test_objects_are_created_patched_and_deleted_with_what_they_own() -> None:
    plane = MemoryServer(now=now)
    kube = Kube(plane)
    made = await kube.create(HYPERJOBS, HYPERJOB)
    with pytest.raises(AlreadyExists):
        await kube.create(HYPERJOBS, HYPERJOB)
    owner = {"uid": made["metadata"]["uid"], "controller": True}
    child = {"metadata": {"namespace": "a", "name": "child", "ownerReferences": [owner]}}
    await kube.create(VCJOBS, child)
    version = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "status": {"restarts": 1}}
    patch = {"kind": PatchType.MERGE, "namespace": "a", "subresource": "status"}
    changed = await kube.patch(HYPERJOBS, "one", body, **patch)
    assert changed["metadata"]["generation"] == 1
    with pytest.raises(Conflict):
        await kube.patch(HYPERJOBS, "one", body, **patch)
    spec = {"spec": {"suspend": True}}
    changed = await kube.patch(HYPERJOBS, "one", spec, kind=PatchType.MERGE, namespace="a")
    assert changed["metadata"]["generation"] == 2
    with pytest.raises(Conflict):
        await kube.delete(HYPERJOBS, "one", namespace="a", uid="another")
    await kube.delete(HYPERJOBS, "one", namespace="a")
    for resource, name in ((HYPERJOBS, "one"), (VCJOBS, "child")):
        with pytest.raises(NotFound):
            await kube.get(resource, name, namespace="a")


def test_json_patches_set_fields_and_check_them() -> None:
    operations = [
        {"op": "test", "path": "/spec/tasks/0/name", "value": "w"},
        {"op": "add", "path": "/spec/tasks/0/replicas", "value": 3},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "c"},
    ]
    target = {"metadata": {"labels": {}}, "spec": {"tasks": [{"name": "w", "replicas": 1}]}}
    found = patched(target, operations)
    assert found["spec"]["tasks"] == [{"name": "w", "replicas": 3}]
    assert found["metadata"]["labels"] == {"a/b": "c"}
    assert target["spec"]["tasks"][0]["replicas"] == 1
    with pytest.raises(ValueError, match="failed"):
        patched(target, [{"op": "test", "path": "/spec/tasks/0/name", "value": "x"}])


def labelled(name: str, namespace: str = "a", **labels: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}}


def test_a_watch_begins_at_the_version_of_its_list_or_answers_that_it_is_too_old() -> None:
    async def act() -> str:
        server = MemoryServer(now=now)
        kube = Kube(server)
        listed = await kube.list(HYPERJOBS)
        server.put(HYPERJOBS, labelled("one"))
        stream = kube.watch(HYPERJOBS, resource_version=listed.resource_version)
        async with aclosing(stream) as events:
            event = await anext(events)
        for number in range(1025):
            server.put(HYPERJOBS, labelled("one", number=str(number)))
        with pytest.raises(Gone):
            await anext(kube.watch(HYPERJOBS, resource_version=listed.resource_version))
        return str(event.object["metadata"]["name"])

    assert run(act()) == "one"


@virtually
async def test_an_object_is_stored_as_it_is_and_replaced_unless_it_has_changed() -> None:
    server = MemoryServer(now=now)
    kube = Kube(server)
    given = {"uid": "u", "generation": 7, "creationTimestamp": "2026-01-01T00:00:00Z"}
    metadata = {"namespace": "a", "name": "one", **given}
    first = server.put(HYPERJOBS, {"metadata": metadata, "spec": {"suspend": False}})
    assert first["metadata"] == metadata | {"resourceVersion": "2"}
    second = server.put(HYPERJOBS, {"metadata": metadata, "spec": {"suspend": True}})
    assert second["metadata"]["generation"] == 8
    with pytest.raises(Conflict):
        await kube.replace(HYPERJOBS, first)
    await kube.replace(HYPERJOBS, {**second, "status": {"restarts": 2}}, subresource="status")
    stored = await kube.replace(HYPERJOBS, await kube.get(HYPERJOBS, "one", namespace="a"))
    assert (stored["spec"], stored["status"]) == ({"suspend": True}, {"restarts": 2})
    test = [{"op": "test", "path": "/spec/suspend", "value": False}]
    with pytest.raises(Invalid):
        await kube.patch(HYPERJOBS, "one", test, kind=PatchType.JSON, namespace="a")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", ["one", "two"]),
        ("size=big", ["one"]),
        ("size==big,!colour", []),
        ("size!=big", ["two"]),
        ("colour", ["one"]),
        ("!colour,size=small", ["two"]),
    ],
)
@virtually
async def test_a_list_has_the_objects_of_its_selector(selector: str, names: list[str]) -> None:
    server = MemoryServer(now=now)
    server.put(HYPERJOBS, labelled("one", size="big", colour="red"))
    server.put(HYPERJOBS, labelled("two", size="small"))
    listed = await Kube(server).list(HYPERJOBS, label_selector=selector)
    assert [each["metadata"]["name"] for each in listed.items] == names
    listed = await Kube(server).list(HYPERJOBS, field_selector="metadata.name=two")
    assert [each["metadata"]["name"] for each in listed.items] == ["two"]
