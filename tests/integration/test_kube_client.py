"""The client, informer, elector and recorder against a whole API server over real TLS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from hyperjob_core.kube import errors
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.resources import CONFIG_MAPS, EVENTS, HYPERJOBS
from tests.integration.test_controller import hyperjob

FOREVER = 60.0


@pytest.fixture
async def kube(control_plane: Any) -> AsyncIterator[Kube]:
    async with Kube.connect(
        kubeconfig=control_plane.kubeconfig, user_agent="kube-test/1"
    ) as client:
        yield client


def settings(namespace: str, name: str, **data: str) -> dict[str, Any]:
    return {
        **CONFIG_MAPS.head,
        "metadata": {"name": name, "namespace": namespace, "labels": {"test": "kube"}},
        "data": data,
    }


async def test_an_object_lives_and_dies(kube, namespace):
    created = await kube.create(CONFIG_MAPS, settings(namespace, "one", a="1"))
    assert created["metadata"]["uid"]
    assert [entry["manager"] for entry in created["metadata"]["managedFields"]] == ["kube-test"]
    with pytest.raises(errors.AlreadyExists):
        await kube.create(CONFIG_MAPS, settings(namespace, "one"))

    created["data"]["a"] = "2"
    replaced = await kube.replace(CONFIG_MAPS, created)
    with pytest.raises(errors.Conflict):
        await kube.replace(CONFIG_MAPS, created)

    merged = await kube.patch(
        CONFIG_MAPS, "one", {"data": {"b": "3"}}, kind=PatchType.MERGE, namespace=namespace
    )
    assert merged["data"] == {"a": "2", "b": "3"}
    operations = [{"op": "remove", "path": "/data/a"}]
    jsoned = await kube.patch(
        CONFIG_MAPS, "one", operations, kind=PatchType.JSON, namespace=namespace
    )
    assert jsoned["data"] == {"b": "3"}

    with pytest.raises(errors.Conflict):
        await kube.delete(CONFIG_MAPS, "one", namespace=namespace, uid="another")
    for kind, body in (
        (PatchType.MERGE, {"metadata": {"uid": "another"}, "data": {"b": "4"}}),
        (PatchType.JSON, [{"op": "add", "path": "/metadata/uid", "value": "another"}]),
    ):
        with pytest.raises(errors.Conflict, match="another"):
            await kube.patch(CONFIG_MAPS, "one", body, kind=kind, namespace=namespace)
    uid = replaced["metadata"]["uid"]
    await kube.delete(CONFIG_MAPS, "one", namespace=namespace, uid=uid, propagation="Background")
    with pytest.raises(errors.NotFound) as raised:
        await kube.get(CONFIG_MAPS, "one", namespace=namespace)
    assert raised.value.message == 'configmaps "one" not found'


async def test_a_list_of_many_pages_is_whole_and_can_be_watched_from(kube, namespace):
    async with asyncio.TaskGroup() as group:
        for number in range(23):
            group.create_task(kube.create(CONFIG_MAPS, settings(namespace, f"page-{number:02}")))
    listed = await kube.list(CONFIG_MAPS, namespace=namespace, label_selector="test=kube", limit=5)
    assert [obj["metadata"]["name"] for obj in listed.items] == [
        f"page-{number:02}" for number in range(23)
    ]
    assert {obj["kind"] for obj in listed.items} == {"ConfigMap"}

    await kube.patch(
        CONFIG_MAPS, "page-07", {"data": {"a": "b"}}, kind=PatchType.MERGE, namespace=namespace
    )
    await kube.delete(CONFIG_MAPS, "page-08", namespace=namespace)
    seen = []
    async with (
        asyncio.timeout(FOREVER),
        aclosing(
            kube.watch(
                CONFIG_MAPS,
                namespace=namespace,
                label_selector="test=kube",
                resource_version=listed.resource_version,
            )
        ) as events,
    ):
        async for event in events:
            seen.append((event.type, event.object["metadata"].get("name")))
            if len(seen) == 2:
                break
    assert seen == [(EventType.MODIFIED, "page-07"), (EventType.DELETED, "page-08")]


@asynccontextmanager
async def running(coroutine: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_events_are_taken_by_the_server(kube, namespace):
    job = await kube.create(HYPERJOBS, hyperjob(namespace, "noted"))
    recorder = EventRecorder(kube, "hyperjob-controller", instance="pod-1")
    async with running(recorder.run()):
        recorder.event(job, "Warning", "Unplaced", "Place", "no cluster has room")
        recorder.event(job, "Warning", "Unplaced", "Place", "no cluster has room")
    (event,) = (await kube.list(EVENTS, namespace=namespace)).items
    assert event["regarding"]["uid"] == job["metadata"]["uid"]
    assert event["series"]["count"] == 2
    async with running(recorder.run()):
        recorder.event(job, "Warning", "Unplaced", "Place", "no cluster has room")
    (event,) = (await kube.list(EVENTS, namespace=namespace)).items
    assert event["series"]["count"] == 3
