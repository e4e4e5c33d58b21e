"""What `watch` of a HyperJob yields."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from hyperjob.sdk.job import AsyncJob
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, WatchEvent
from hyperjob_core.kube.errors import Gone
from hyperjob_core.kube.paging import ObjectList


def hyperjob(uid: str, phase: str, version: str) -> Object:
    return {
        "metadata": {"name": "llm", "namespace": "ml", "uid": uid, "resourceVersion": version},
        "spec": {"replicatedJobs": []},
        "status": {"state": {"phase": phase}},
    }


class Server:
    """Lists a HyperJob, ends the watch, and then lists a new HyperJob of the same name."""

    def __init__(self, *lists: Object) -> None:
        self.lists = list(lists)

    async def list(self, *_: Any, **__: Any) -> ObjectList:
        return ObjectList([self.lists.pop(0)], "5")

    async def watch(self, *_: Any, opened: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        if not self.lists:
            await asyncio.Event().wait()
        raise Gone({"code": 410, "message": "old"})
        yield WatchEvent(EventType.BOOKMARK, {})


@pytest.mark.parametrize(
    ("uids", "phases"),
    [(("a", "a"), ["Running", "Completed"]), (("a", "b"), ["Running"]), (("b", "b"), [])],
)
async def test_watch_ends_where_a_new_hyperjob_of_the_same_name_begins(
    uids: tuple[str, str], phases: list[str]
) -> None:
    first, second = uids
    server = Server(hyperjob(first, "Running", "1"), hyperjob(second, "Completed", "2"))
    client: Any = SimpleNamespace(kube=server, page="")
    job = AsyncJob(client, hyperjob("a", "Pending", "0"))
    async with asyncio.timeout(30):
        assert [str(each.phase) async for each in job.watch()] == phases
    assert job.raw["metadata"]["uid"] == "a"
