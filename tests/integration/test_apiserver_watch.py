"""Watches of the embedded API server: where they start, what they show, how they end."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from hyperjob_sandbox.apiserver.server import ApiServer
from tests.support.rawapi import GADGET_CRD, GADGETS, RawApi, gadget

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(crds=[GADGET_CRD], history=8, bookmark_seconds=0.05) as server:
        yield server


async def test_watches_of_one_namespace_see_no_other(api: RawApi) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    version = (await api.get(GADGETS)).version
    await api.post(GADGETS.replace("default", "other"), gadget("theirs"))
    await api.post(GADGETS, gadget("ours"))
    async with api.watch(f"{GADGETS}?resourceVersion={version}") as events:
        assert await events.names(1) == [("ADDED", "ours")]
    everywhere = "/apis/test.example.dev/v1/gadgets"
    async with api.watch(f"{everywhere}?resourceVersion={version}") as events:
        assert await events.names(2) == [("ADDED", "theirs"), ("ADDED", "ours")]


async def test_bookmarks_carry_the_newest_version_of_anything(api: RawApi) -> None:
    version = (await api.get(GADGETS)).version
    elsewhere = await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    query = f"?allowWatchBookmarks=true&resourceVersion={version}"
    async with api.watch(GADGETS + query) as events:
        bookmark = await events.next()
    assert bookmark["type"] == "BOOKMARK"
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(elsewhere.version)


async def test_the_history_is_bounded(api: RawApi) -> None:
    first = (await api.post(GADGETS, gadget("a"))).version
    for size in range(1, 20):
        await api.merge(f"{GADGETS}/a", {"spec": {"size": size}})
    async with api.watch(f"{GADGETS}?resourceVersion={first}") as events:
        found = await events.rest()
    assert [event["type"] for event in found] == ["ERROR"]
    status = found[0]["object"]
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith(f"too old resource version: {first} (")


async def test_a_watch_ends_after_its_time(api: RawApi) -> None:
    await api.post(GADGETS, gadget("a"))
    async with api.watch(f"{GADGETS}?timeoutSeconds=1") as events:
        assert [event["type"] for event in await events.rest()] == ["ADDED"]


async def test_tables_and_metadata_can_be_watched(api: RawApi) -> None:
    version = (await api.get(GADGETS)).version
    await api.post(GADGETS, gadget("a", spec={"size": 7}))
    await api.merge(f"{GADGETS}/a", {"spec": {"size": 8}})
    query = f"{GADGETS}?resourceVersion={version}"
    async with api.watch(query, Accept=TABLE) as events:
        first, second = [(await events.next())["object"] for _ in range(2)]
    assert [row["cells"] for row in first["rows"] + second["rows"]] == [["a", 7], ["a", 8]]
    assert [c["name"] for c in first["columnDefinitions"]] == ["Name", "Size"]
    assert second["columnDefinitions"] is None
    async with api.watch(query, Accept=PARTIAL) as events:
        event = await events.next()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in event["object"]


async def test_many_watchers_all_see_everything_in_order(api: RawApi) -> None:
    version = (await api.get(GADGETS)).version
    query = f"{GADGETS}?resourceVersion={version}"
    opened = 20

    async def reader(ready: asyncio.Semaphore) -> list[tuple[str, str]]:
        async with api.watch(query) as events:
            ready.release()
            return await events.names(6)

    ready = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(reader(ready)) for _ in range(opened)]
        for _ in range(opened):
            await ready.acquire()
        for number in range(6):
            await api.post(GADGETS, gadget(f"g{number}"))
    expected = [("ADDED", f"g{number}") for number in range(6)]
    assert all(task.result() == expected for task in readers)
