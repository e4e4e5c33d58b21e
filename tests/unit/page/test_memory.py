"""What the page keeps in memory ends with the objects and the requests that it is about."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_page.pages.answers import PageCache
from hyperjob_page.visitor import EVERYTHING
from hyperjob_page.world import LiveState
from tests.support.apiserver import ApiServer
from tests.support.fleet import hyperjob

LIMIT = 60.0


class Slow:
    """A page whose parts wait, or fail with an error."""

    title = section = template = "slow"

    def __init__(self, key: str, error: Exception | None = None) -> None:
        self.key = key
        self.made = 0
        self.go = asyncio.Event()
        self._error = error

    def version(self) -> int:
        return 1

    async def parts(self) -> Mapping[str, str]:
        self.made += 1
        await self.go.wait()
        if self._error is not None:
            raise self._error
        return {"part": self.key}


async def test_requests_for_a_page_still_wait_for_one_rendering() -> None:
    cache, page = PageCache(), Slow("page")
    first = [asyncio.create_task(cache.parts(page)) for _ in range(3)]
    await asyncio.sleep(0)
    page.go.set()
    await first[0]
    later = await cache.parts(page)
    assert all(made is later for made in await asyncio.gather(*first))
    assert page.made == 1


async def test_the_world_forgets_a_namespace_with_its_last_hyperjob() -> None:
    server = ApiServer()
    world = LiveState(server.kube)

    async def until(namespaces: list[str]) -> None:
        while world.namespaces != namespaces:  # noqa: ASYNC110, the world has no events
            await asyncio.sleep(0)

    async with world.running(), asyncio.timeout(LIMIT):
        await world.synced()
        for number in range(3):
            server.put(HYPERJOBS, hyperjob(number, clusters=2))
        await until(["team-0", "team-1", "team-2"])
        assert dict(world.phases(EVERYTHING))["Running"] == 3
        for number in (0, 2):
            name = f"train-{number}"
            await server.kube.delete(HYPERJOBS, name, namespace=f"team-{number}")
        await until(["team-1"])
        state: Any = world
        assert set(state._tallies) == set(state._by_queue) == {"team-1"}
        assert dict(world.phases(EVERYTHING))["Running"] == 1
