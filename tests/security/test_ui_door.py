"""The page's door without a session: redirects, connections and headers."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from hyperjob_core.serving.listener import listening
from hyperjob_page.access.local import LocalAccess
from hyperjob_page.pages.answers import Context
from hyperjob_page.serve import make_app
from hyperjob_page.world import LiveState
from tests.support.apiserver import ApiServer
from tests.support.fleet import fill
from tests.support.openaccess import OpenAccess

LIMIT = 60.0
LINK = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nAccept: text/html"


@asynccontextmanager
async def served(*, local: bool = False, **options: Any) -> AsyncIterator[tuple[int, str]]:
    """Serve a small fleet; yield the port and, for a local page, its address with the token."""
    server = ApiServer()
    fill(server, hyperjobs=8, clusters=2)
    kube = server.kube
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(LiveState(kube).running())
        access: Any = OpenAccess(kube)
        if local:
            access = await stack.enter_async_context(LocalAccess(kube))
        context = Context(world=world, access=access)
        _, port = await stack.enter_async_context(
            listening(make_app(context), "127.0.0.1", 0, **options)
        )
        async with asyncio.timeout(LIMIT):
            await world.synced()
            yield port, access.listens_on("127.0.0.1", port) if local else ""


async def raw(port: int, target: str, headers: str = "Accept: text/html") -> str:
    """Send a request line as it is, which a client would normalize, and return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n"
    writer.write(f"{request}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/x",
        "///evil.example/x",
        "/\\evil.example/x",
        "/\\/evil.example",
        "//evil.example",
    ],
)
async def test_a_link_without_a_session_leads_to_no_other_host(target: str) -> None:
    async with served(local=True) as (port, _):
        shown = await raw(port, target, LINK)
    assert shown.startswith("HTTP/1.1 200"), shown[:200]
    found = re.search(r'content="0; url=([^"]*)"', shown)
    assert re.match(r"/(?![/\\])", found[1]), found[1]
    assert not re.search(r'href="/?[/\\]+evil', shown)


@pytest.mark.parametrize("target", ["/static/../..", "/static/", "/static/../../etc/passwd"])
async def test_a_path_out_of_the_files_is_not_found(target: str) -> None:
    async with served() as (port, _):
        assert (await raw(port, target)).startswith("HTTP/1.1 404")


async def test_a_path_out_of_the_files_needs_the_token() -> None:
    async with served(local=True) as (port, _):
        assert (await raw(port, "/static/../..")).startswith("HTTP/1.1 403")


@pytest.mark.parametrize("target", ["/", "/nowhere"])
async def test_no_answer_names_the_software(target: str) -> None:
    async with served() as (port, _):
        head = (await raw(port, target)).partition("\r\n\r\n")[0]
    assert "\r\nServer: hyperjob" in head
    assert "aiohttp" not in head
    assert "\r\nX-Content-Type-Options: nosniff" in head


async def test_a_header_has_a_time_limit() -> None:
    async with served(header_seconds=0.3) as (port, _), asyncio.timeout(LIMIT):
        silent = await asyncio.open_connection("127.0.0.1", port)
        begun = await asyncio.open_connection("127.0.0.1", port)
        begun[1].write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        for reader, writer in (silent, begun):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b"", "the server has closed it"
            writer.close()
        assert (await raw(port, "/healthz")).startswith("HTTP/1.1 200")


async def test_strangers_cannot_take_all_connections() -> None:
    async with served(connections=20) as (port, _), aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/hyperjobs") as answer:
            assert answer.status == 200
        strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        assert (await raw(port, "/healthz")).startswith("HTTP/1.1 200")
        for reader, writer in strangers[:40]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b"", "the server has closed the oldest"
            writer.close()
        for _, writer in strangers[40:]:
            writer.close()
