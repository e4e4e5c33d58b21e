"""The interface of a page: parts of HTML, which the server makes again after a change."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from hyperjob.ui.render import mark

_PAGES_KEPT: Final = 128


class Page(Protocol):
    """One screen for visitors of one scope; equal `key`s are the same page."""

    @property
    def key(self) -> Hashable:
        """Return a value that no other page has."""
        ...

    @property
    def title(self) -> str:
        """Return the heading, which is also the browser's title."""
        ...

    @property
    def section(self) -> str:
        """Return the entry of the navigation."""
        ...

    @property
    def template(self) -> str:
        """Return the template for the parts."""
        ...

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        ...

    async def parts(self) -> Mapping[str, str]:
        """Return the HTML of each part, by the id of its element."""
        ...


@dataclass(frozen=True, slots=True)
class Made:
    """The HTML and the mark of each part, by id."""

    version: Hashable
    html: Mapping[str, str]
    marks: Mapping[str, str]
    at: float


class PageCache:
    """A cache of parts: fifty viewers of a page cost as much as one."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._making: dict[Hashable, asyncio.Lock] = {}

    async def parts(self, page: Page, *, oldest: float = math.inf) -> Made:
        """Return the current parts of a page; ages in them may be `oldest` seconds old."""
        lock = self._making.setdefault(page.key, asyncio.Lock())
        async with lock:
            made = await self._parts(page, oldest)
        if not lock.locked():
            self._making.pop(page.key, None)
        return made

    async def _parts(self, page: Page, oldest: float) -> Made:
        version, now = page.version(), time.monotonic()
        made = self._made.pop(page.key, None)
        if made is None or made.version != version or now - made.at > oldest:
            html = await page.parts()
            made = Made(version, html, {name: mark(text) for name, text in html.items()}, now)
        self._made[page.key] = made
        while len(self._made) > _PAGES_KEPT:
            self._made.popitem(last=False)
        return made
