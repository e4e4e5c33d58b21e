"""The web page, served on loopback for a test, and a client that reads it as a browser does."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import aiohttp

from hyperjob_core.kube.client import Kube
from hyperjob_page.pages.answers import Context
from hyperjob_page.serve import serving
from hyperjob_page.world import LiveState
from tests.support.openaccess import OpenAccess


@dataclass
class Page:
    """An answer: status, headers, and the HTML as text."""

    status: int
    headers: Any
    html: str

    @property
    def text(self) -> str:
        """Return the text of the page without tags."""
        reader = _Text()
        reader.feed(self.html)
        return " ".join(" ".join(reader.found).split())


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


@dataclass
class Ui:
    """A running page."""

    world: LiveState
    base: str
    session: aiohttp.ClientSession

    async def get(self, path: str) -> Page:
        async with self.session.get(self.base + path, allow_redirects=False) as answer:
            return Page(answer.status, answer.headers, await answer.text())

    async def post(self, path: str, **form: str) -> Page:
        async with self.session.post(
            self.base + path, data={"csrf": "", **form}, allow_redirects=False
        ) as answer:
            return Page(answer.status, answer.headers, await answer.text())

    async def until(self, path: str, words: str, *, seconds: float = 60) -> Page:
        """Read a page again after each change until it contains `words`."""
        async with asyncio.timeout(seconds):
            while True:
                changed = asyncio.create_task(self.world.changed())
                try:
                    page = await self.get(path)
                    if words in page.text:
                        return page
                    await asyncio.wait({changed}, timeout=1)
                finally:
                    changed.cancel()
                    await asyncio.gather(changed, return_exceptions=True)

    async def events(self, path: str, *, until: str, seconds: float = 60) -> list[tuple[str, Any]]:
        """Read server-sent events until a text comes."""
        found: list[tuple[str, Any]] = []
        async with asyncio.timeout(seconds), self.session.get(self.base + path) as answer:
            assert answer.status == 200, await answer.text()
            name = ""
            while True:
                line = (await _line(answer.content)).decode()
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                if line.startswith("data: "):
                    found.append((name, json.loads(line.removeprefix("data: "))))
                    if until in line:
                        return found


async def _line(content: aiohttp.StreamReader) -> bytes:
    """Read a line of any length."""
    parts = []
    while True:
        try:
            line = await content.readuntil(b"\n")
        except ValueError:
            parts.append(await content.read(2**16))
            if parts[-1].endswith(b"\n"):
                return b"".join(parts).rstrip(b"\n")
            continue
        assert line, "the stream has ended"
        return b"".join([*parts, line]).rstrip(b"\n")


async def open_ui(stack: AsyncExitStack, kube: Kube, *, read_only: bool = False) -> Ui:
    """Serve the page of an API server with the rights of `kube`."""
    world = await stack.enter_async_context(LiveState(kube).running())
    context = Context(
        world=world,
        access=OpenAccess(kube, read_only=read_only),
    )
    port = await stack.enter_async_context(serving(context, "127.0.0.1", 0))
    session = await stack.enter_async_context(aiohttp.ClientSession())
    async with asyncio.timeout(60):
        await world.synced()
    return Ui(world, f"http://127.0.0.1:{port}", session)
