"""Server-sent events: viewers are bounded, share one rendering, and a slow one holds up nobody."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_page import measures
from hyperjob_page.pages import answers, jobs
from hyperjob_page.pages.answers import Context
from hyperjob_page.world import LiveState
from tests.support.apiserver import ApiServer
from tests.support.fleet import fill, hyperjob
from tests.support.openaccess import OpenAccess

LIMIT = 60.0
NEWEST = 119
TABLE = "/live?page=/hyperjobs"


class Served:
    """The stream of a small fleet, for `limit` viewers."""

    def __init__(self, server: ApiServer, base: str, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.base = base
        self.session = session

    def change(self, message: str) -> None:
        self.server.put(HYPERJOBS, hyperjob(NEWEST, clusters=3, message=message))

    def watch(self) -> Any:
        return self.session.get(self.base + TABLE)


async def word(answer: aiohttp.ClientResponse, text: str) -> str:
    """Read a stream until a text is in an event, and give that event."""
    async for line in _lines(answer):
        if text in line:
            return line
    raise AssertionError(f"the stream ended before {text}")


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[str]:
    held = b""
    async for chunk in answer.content.iter_any():
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            yield line.decode()


@asynccontextmanager
async def served(limit: int) -> AsyncIterator[Served]:
    server = ApiServer()
    fill(server, hyperjobs=NEWEST + 1, clusters=3)
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(LiveState(server.kube).running())
        context = Context(
            world=world,
            access=OpenAccess(server.kube),
        )
        streams = answers.Live(context, limit=limit)
        app = web.Application()
        app.add_routes([web.get("/live", streams.handle)])
        app.on_shutdown.append(streams.close)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        async with asyncio.timeout(LIMIT):
            await world.synced()
            yield Served(server, f"http://127.0.0.1:{runner.addresses[0][1]}", session)


async def test_one_viewer_more_than_the_limit_is_told_to_come_back_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "PAUSE_SECONDS", 0.05)
    async with served(20) as site, AsyncExitStack() as stack:
        viewers = [await stack.enter_async_context(site.watch()) for _ in range(20)]
        assert {answer.status for answer in viewers} == {200}
        async with site.watch() as refused:
            assert refused.status == 503
            assert int(refused.headers["Retry-After"]) > 0
        viewers[0].close()
        while True:  # the server hears of it when it writes
            site.change("a viewer has gone")
            await word(viewers[-1], "a viewer has gone")
            async with site.watch() as again:
                if again.status == 200:
                    break
            site.change("another change")
            await word(viewers[-1], "another change")


async def test_viewers_of_a_page_share_one_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    whole = jobs.JobsPage.parts

    async def counted(self: jobs.JobsPage) -> Any:
        nonlocal made
        made += 1
        return await whole(self)

    monkeypatch.setattr(jobs.JobsPage, "parts", counted)
    async with served(60) as site, AsyncExitStack() as stack:
        viewers = [await stack.enter_async_context(site.watch()) for _ in range(50)]
        await asyncio.gather(*(word(answer, "jobs-table") for answer in viewers))
        before = made
        site.change("for all of them")
        found = await asyncio.gather(*(word(answer, "for all of them") for answer in viewers))
        assert {json.dumps(json.loads(each.removeprefix("data: "))) for each in found}
        assert len(set(found)) == 1
        assert made - before <= 2, "fifty viewers cost as much as one"


async def test_a_viewer_that_does_not_read_holds_up_nobody_and_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(measures, "WRITE_SECONDS", 0.5)
    async with served(2) as site:
        loop = asyncio.get_running_loop()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.setblocking(False)
            host, port = site.base.removeprefix("http://").split(":")
            await loop.sock_connect(slow, (host, int(port)))
            asked = f"GET {TABLE}%3Fsize%3D200 HTTP/1.1\r\nHost: {host}\r\n\r\n"
            await loop.sock_sendall(slow, asked.encode())
            async with site.watch() as quick:
                number = 0
                while True:
                    number += 1
                    site.change(f"change-{number}-of-many")
                    await word(quick, f"change-{number}-of-many")
                    async with site.watch() as other:
                        if other.status == 200:
                            break  # the slow one has lost its place
                        assert other.status == 503
