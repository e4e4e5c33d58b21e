"""The web page, served on loopback for a test, and a client that reads it as a browser does."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import aiohttp

from hyperjob_core.kube.client import Kube
from hyperjob_core.serving.listener import listening
from hyperjob_page.pages.answers import Context
from hyperjob_page.serve import make_app
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

    async def get(self, path: str, **headers: str) -> Page:
        async with self.session.get(
            self.base + path, headers=headers, allow_redirects=False
        ) as answer:
            return Page(answer.status, answer.headers, await answer.text())

    async def post(self, path: str, **form: str) -> Page:
        async with self.session.post(
            self.base + path, data={"csrf": "", **form}, allow_redirects=False
        ) as answer:
            return Page(answer.status, answer.headers, await answer.text())

    async def until(self, path: str, words: str, *, seconds: float = 60) -> Page:
        """Read a page again until it contains `words`."""
        async with asyncio.timeout(seconds):
            while words not in (page := await self.get(path)).text:  # noqa: ASYNC110, as a user reads
                await asyncio.sleep(0.05)
        return page


async def open_ui(stack: AsyncExitStack, kube: Kube, *, read_only: bool = False) -> Ui:
    """Serve the page of an API server with the rights of `kube`."""
    world = await stack.enter_async_context(LiveState(kube).running())
    context = Context(world=world, access=OpenAccess(kube, read_only=read_only))
    _, port = await stack.enter_async_context(listening(make_app(context), "127.0.0.1", 0))
    session = await stack.enter_async_context(aiohttp.ClientSession())
    async with asyncio.timeout(60):
        await world.synced()
    return Ui(world, f"http://127.0.0.1:{port}", session)
