"""The control plane in memory answers the controller's client as an API server does."""

import asyncio
from contextlib import aclosing

import pytest

from hyperjob.simulate.clock import now, run
from hyperjob.simulate.patches import merged, patched
from hyperjob.simulate.plane import Plane
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, Conflict, NotFound
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS

HYPERJOB = {"metadata": {"namespace": "a", "name": "one"}, "spec": {"suspend": False}}


def test_objects_are_created_patched_and_deleted_with_what_they_own() -> None:
    async def act() -> None:
        plane = Plane(now=now)
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

    run(act())


def test_a_watch_tells_every_change_once() -> None:
    async def act() -> list[tuple[EventType, str]]:
        plane = Plane(now=now)
        kube, found = Kube(plane), []
        listed = await kube.list(HYPERJOBS)

        async def follow() -> None:
            watch = kube.watch(HYPERJOBS, resource_version=listed.resource_version)
            async with aclosing(watch) as events:
                async for event in events:
                    found.append((event.type, event.object["metadata"]["name"]))  # noqa: PERF401

        task = asyncio.create_task(follow())
        await asyncio.sleep(1)
        plane.create(HYPERJOBS, HYPERJOB)
        plane.change(HYPERJOBS, "a/one", {"status": {"restarts": 1}}, status=True)
        plane.change(HYPERJOBS, "a/one", {"status": {"restarts": 1}}, status=True)
        plane.remove(HYPERJOBS, "a/one")
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    kinds = [kind for kind, _ in run(act())]
    assert kinds == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"b": {"c": {"d": None}}}, {"a": 1, "b": {"c": {}}}),
    ],
)
def test_merge_patches_follow_rfc_7396(target: object, patch: object, expected: object) -> None:
    assert merged(target, patch) == expected


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
