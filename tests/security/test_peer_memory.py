"""What stays in memory of what a peer sends: facts up to a budget, and nothing while it pauses."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pytest

from hyperjob_controller.members.member import Budget, Member
from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube, WatchEvent
from hyperjob_core.kube.paging import Bounds, ObjectList
from hyperjob_core.kube.reflector import Reflector
from hyperjob_core.kube.resources import NODES, PODS, Resource
from hyperjob_core.tasks import cancel
from tests.security.test_bounds import BUFFERS, MIB, once, page, pages
from tests.support.peer import CHUNKED, OK, SECONDS, chunk, misbehaving, talking


async def followed(kube: Kube, budget: Budget, *resources: Resource) -> tuple[Member, str]:
    """Follow a member until that fails; return it, and the words of the error."""
    member = Member(
        "east",
        kube.member("east"),
        resources=resources,
        pages=asyncio.Semaphore(),
        now=utc_now,
        heard=lambda *_: None,
        budget=budget,
    )
    with pytest.raises(ExceptionGroup) as raised:
        await member.run()
    return member, str(raised.value.exceptions[0])


async def test_a_member_with_pods_without_end_is_not_known(tmp_path: Path) -> None:
    answer = pages(*(f"p{n}" for n in range(100)), spec={"nodeSelector": {"a": "x" * 1000}})
    async with talking(answer, tmp_path) as (peer, kube):
        member, error = await followed(kube, Budget(10 * MIB), PODS)
    assert not member.is_known(utc_now())
    assert f"and {10 * MIB} are the most" in error
    assert peer.sent < BUFFERS


def read_objects() -> int:
    """Return how many of the objects that a peer has sent are in memory as they came."""
    return sum(type(each) is list and each[:1] == ["sent"] for each in gc.get_objects())


def event(kind: str, **more: Any) -> bytes:
    obj = {"metadata": {"name": "a", "resourceVersion": "6"}, **more}
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


async def test_what_came_of_an_object_is_not_kept_while_the_next_one_is_awaited(
    tmp_path: Path,
) -> None:
    held, more = list[int](), asyncio.Event()

    async def answer(request: str) -> AsyncIterator[bytes]:
        if "watch=1" in request:
            yield OK + CHUNKED + chunk(event("MODIFIED", spec=["sent"]))
            await more.wait()
            held.append(read_objects())
            yield chunk(event("BOOKMARK"))
        elif "continue=" in request:
            held.append(read_objects())
            yield page()
        else:
            yield page("a", "b", token="more", spec=["sent"])

    async with (
        asyncio.timeout(SECONDS),
        misbehaving(answer, tmp_path) as peer,
        Kube.connect(kubeconfig=peer.kubeconfig) as kube,
        aclosing(Reflector(kube, NODES, transform=names).steps()) as steps,
    ):
        assert isinstance(await anext(steps), ObjectList)
        for kind in (EventType.MODIFIED, EventType.BOOKMARK):
            step = await anext(steps)
            assert isinstance(step, WatchEvent)
            assert step.type is kind
            del step
            more.set()
    assert held == [0, 0]


async def test_what_came_of_a_list_that_failed_is_not_kept(tmp_path: Path) -> None:
    failed = asyncio.Event()
    async with talking(
        once(page("a", "b", token="more", spec=["sent"])), tmp_path, bounds=Bounds(items=5)
    ) as (_, kube):
        reflector = Reflector(kube, NODES, report=lambda _: failed.set())
        async with aclosing(reflector.steps()) as steps:
            step = asyncio.ensure_future(anext(steps))
            await failed.wait()
            assert "more than 5 objects" in str(reflector.last_error)
            assert read_objects() == 0
            await cancel([step])


def names(raw: Object) -> Object:
    return {"metadata": raw["metadata"]}


async def test_other_tasks_run_between_the_objects_of_a_page(tmp_path: Path) -> None:
    turns, seen = 0, list[int]()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def transform(raw: Object) -> Object:
        began = time.thread_time()
        while time.thread_time() < began + 0.001:
            pass
        seen.append(turns)
        return raw

    async with talking(once(page(*map(str, range(500)))), tmp_path) as (_, kube):
        task = asyncio.ensure_future(others())
        await kube.list(NODES, transform=transform)
        await cancel([task])
    assert max(Counter(seen).values()) <= 10


async def test_one_page_is_decoded_at_a_time_also_of_members(tmp_path: Path) -> None:
    present, most = set[str](), 0

    def decoded(of: str) -> Callable[[Object], Object]:
        def transform(raw: Object) -> Object:
            nonlocal most
            present.add(of)
            most = max(most, len(present))
            if raw["metadata"]["name"] == "499":
                present.discard(of)
            return names(raw)

        return transform

    async with talking(once(page(*map(str, range(500)))), tmp_path) as (_, kube):
        members = {name: kube.member(name) for name in ("east", "west", "north")}
        await asyncio.gather(
            *(each.list(NODES, transform=decoded(name)) for name, each in members.items())
        )
    assert most == 1


async def test_a_list_of_pages_without_end_takes_turns_with_other_lists(tmp_path: Path) -> None:
    slots = asyncio.Semaphore(1)
    async with (
        asyncio.timeout(SECONDS),
        misbehaving(pages("a"), tmp_path) as peer,
        Kube.connect(kubeconfig=peer.kubeconfig) as kube,
        misbehaving(once(page("b")), tmp_path) as other,
    ):
        endless = asyncio.ensure_future(kube.member("east").list(NODES, pages=slots))
        async with Kube.connect(kubeconfig=other.kubeconfig) as honest:
            listed = await honest.list(NODES, pages=slots)
        assert not endless.done()
        await cancel([endless])
    assert [each["metadata"]["name"] for each in listed.items] == ["b"]


async def test_lines_that_do_not_end_count_as_kept_of_their_member(tmp_path: Path) -> None:
    async def answer(request: str) -> AsyncIterator[bytes]:
        if "watch=1" not in request:
            yield page()
            return
        yield OK + CHUNKED + chunk(b" " * 3 * MIB)
        await asyncio.Event().wait()

    async with talking(answer, tmp_path) as (_, kube):
        _, error = await followed(kube, Budget(5 * MIB), PODS, NODES)
    assert f"and {5 * MIB} are the most" in error
