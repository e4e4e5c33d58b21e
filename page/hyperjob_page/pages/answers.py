"""From the address of a page to its HTML: find the page, make its parts, fill its template.

A browser asks again every second, with the mark of the page that it has: of a page that has not
changed since, it gets the mark alone.
"""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from aiohttp import web

from hyperjob.client.errors import words
from hyperjob_core.kube.errors import KubeError
from hyperjob_page.listing import parse
from hyperjob_page.pages.fleet import CardCache, FleetPage
from hyperjob_page.pages.jobs import JobPage, JobsPage
from hyperjob_page.pages.queues import QueuesPage
from hyperjob_page.render import mark, render
from hyperjob_page.visitor import VISITOR, Scope, VisitorAccess
from hyperjob_page.world import LiveState

_PAGES_KEPT: Final = 128
_OLDEST_SECONDS: Final = 20.0
_READERS: Final = 4
_HERE: Final = "<!-- body -->"


Page: TypeAlias = FleetPage | JobsPage | QueuesPage | JobPage
"""One screen for visitors of one scope; equal pages show the same.

It has a `title`, the `section` of the navigation and a `template` for its `parts`, the HTML of each
by the id of its element; `version` changes when a part may have changed.
"""


@dataclass(frozen=True, slots=True)
class Made:
    """The HTML and the mark of each part, by id."""

    version: Hashable
    html: Mapping[str, str]
    marks: Mapping[str, str]
    at: float


@dataclass(slots=True)
class _Turn:
    """The requests for a page at this moment: one of them makes its parts, the others wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: int = 0


class PageCache:
    """A cache of parts: fifty viewers of a page cost as much as one."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._turns: dict[Hashable, _Turn] = {}

    async def parts(self, page: Page) -> Made:
        """Return the current parts of a page; ages in them may be some seconds old."""
        turn = self._turns.setdefault(page, _Turn())
        turn.requests += 1
        try:
            async with turn.lock:
                return await self._parts(page)
        finally:
            turn.requests -= 1
            if not turn.requests:
                del self._turns[page]

    async def _parts(self, page: Page) -> Made:
        version, now = page.version(), time.monotonic()
        made = self._made.pop(page, None)
        if made is None or made.version != version or now - made.at > _OLDEST_SECONDS:
            html = await page.parts()
            made = Made(version, html, {name: mark(text) for name, text in html.items()}, now)
        self._made[page] = made
        while len(self._made) > _PAGES_KEPT:
            self._made.popitem(last=False)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of the server; `command` adds the flags for the shown API server to a command."""

    world: LiveState
    access: VisitorAccess
    command: Callable[[str], str] = str
    planning: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: defaultdict[str, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(lambda: asyncio.Semaphore(_READERS))
    )
    """The requests of each user that read several logs now: nobody waits for another user."""
    cards: CardCache = field(default_factory=CardCache)
    cache: PageCache = field(default_factory=PageCache)


def pages(context: Context) -> Sequence[web.RouteDef]:
    """Return the routes of all pages that show only the world."""

    async def show(request: web.Request) -> web.StreamResponse:
        world, scope = context.world, request[VISITOR].scope
        page: Page
        match request.path.strip("/"):
            case "":
                page = FleetPage(world, scope, context.cards)
            case "hyperjobs":
                page = JobsPage(world, scope, parse(list(request.query.items())))
            case "queues":
                page = QueuesPage(world, scope)
            case _:
                raise web.HTTPNotFound(text=f"There is no page {request.path}.")
        return await whole(request, context, page)

    return [web.get("/{path:.*}", show)]


def job_page(context: Context, scope: Scope, key: str) -> JobPage | None:
    """Return the page of a HyperJob that a visitor may see; None where there is none."""
    row = context.world.rows.get(key)
    if row is None or not scope.includes(row.summary.namespace):
        return None
    return JobPage(context.world, key, row)


async def whole(
    request: web.Request,
    context: Context,
    page: Page,
    **more: Any,  # noqa: ANN401 - what the template shows
) -> web.Response:
    """Answer with a whole page and its mark, or with status 304 where the browser has this page."""
    visitor, world = request[VISITOR], context.world
    made = await context.cache.parts(page)
    etag = mark(f"{request.rel_url} {made.marks} {world.troubles} {visitor.name} {more}")
    if any(known.value == etag for known in request.if_none_match or ()):
        answer = web.Response(status=304)
    else:
        text = render(
            page.template,
            page=page,
            parts=made.html,
            marks=made.marks,
            world=world,
            visitor=visitor,
            **more,
        )
        answer = html(text)
    answer.etag = etag
    return answer


async def streamed(request: web.Request, frame: str, body: Awaitable[str]) -> web.StreamResponse:
    """Send the frame of a page at once, and its slow part when it is ready.

    `frame` has a mark at the place of the body. An error of the API server appears in the page.
    """
    head, _, tail = frame.partition(_HERE)
    response = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8"})
    await response.prepare(request)
    await response.write(head.encode())
    try:
        text = await body
    except KubeError as error:
        text = render("parts/refused.html", text=words(error))
    await response.write(text.encode())
    await response.write(tail.encode())
    await response.write_eof()
    return response


def html(text: str, *, status: int = 200) -> web.Response:
    """Answer with HTML."""
    return web.Response(status=status, text=text, content_type="text/html", charset="utf-8")


def problem(status: int, text: str) -> web.Response:
    """Return a page with an error text."""
    title = HTTPStatus(status).phrase
    return html(render("problem.html", title=title, status=status, text=text), status=status)
