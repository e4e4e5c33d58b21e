"""From the address of a page to its HTML: find the page, make its parts, fill its template.

Server-sent events send the changed parts to each viewer, once a second at most. A viewer has no
queue of changes: it gets the newest parts at its next turn, and skips the states between.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from aiohttp import web
from yarl import URL

from hyperjob.client.errors import words
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.tasks import cancel
from hyperjob_page.listing import parse
from hyperjob_page.measures import StreamPlaces, send_event
from hyperjob_page.pages.fleet import CardCache, FleetPage
from hyperjob_page.pages.jobs import JobPage, JobsPage
from hyperjob_page.pages.queues import QueuesPage
from hyperjob_page.render import mark, render
from hyperjob_page.visitor import VISITOR, Scope, Visitor, VisitorAccess
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

    async def parts(self, page: Page, *, oldest: float = math.inf) -> Made:
        """Return the current parts of a page; ages in them may be `oldest` seconds old."""
        turn = self._turns.setdefault(page, _Turn())
        turn.requests += 1
        try:
            async with turn.lock:
                return await self._parts(page, oldest)
        finally:
            turn.requests -= 1
            if not turn.requests:
                del self._turns[page]

    async def _parts(self, page: Page, oldest: float) -> Made:
        version, now = page.version(), time.monotonic()
        made = self._made.pop(page, None)
        if made is None or made.version != version or now - made.at > oldest:
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
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READERS))
    cards: CardCache = field(default_factory=CardCache)
    cache: PageCache = field(default_factory=PageCache)


def pages(context: Context) -> Sequence[web.RouteDef]:
    """Return the routes of all pages that show only the world."""

    async def show(request: web.Request) -> web.StreamResponse:
        visitor = request[VISITOR]
        page = resolve(
            request.path, list(request.query.items()), context=context, scope=visitor.scope
        )
        if page is None:
            raise web.HTTPNotFound(text=f"There is no page {request.path}.")
        return html(await whole(context, page, visitor))

    return [web.get("/{path:.*}", show)]


def resolve(
    path: str, query: Sequence[tuple[str, str]], *, context: Context, scope: Scope
) -> Page | None:
    """Return the page of an address; None when there is none."""
    match path.strip("/").split("/"):
        case [""]:
            return FleetPage(context.world, scope, context.cards)
        case ["hyperjobs"]:
            return JobsPage(context.world, scope, parse(query))
        case ["queues"]:
            return QueuesPage(context.world, scope)
        case ["hyperjobs", namespace, name]:
            return job_page(context, scope, f"{namespace}/{name}")
        case _:
            return None


def job_page(context: Context, scope: Scope, key: str) -> JobPage | None:
    """Return the page of a HyperJob that a visitor may see; None where there is none."""
    row = context.world.rows.get(key)
    if row is None or not scope.includes(row.summary.namespace):
        return None
    return JobPage(context.world, key)


async def whole(context: Context, page: Page, visitor: Visitor, **more: Any) -> str:  # noqa: ANN401 - what the template shows
    """Return a whole page as HTML."""
    made = await context.cache.parts(page, oldest=_OLDEST_SECONDS)
    return str(
        render(
            page.template,
            page=page,
            parts=made.html,
            marks=made.marks,
            world=context.world,
            visitor=visitor,
            **more,
        )
    )


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
        text = str(render("parts/refused.html", text=words(error)))
    await response.write(text.encode())
    await response.write(tail.encode())
    await response.write_eof()
    return response


def html(text: str, *, status: int = 200) -> web.Response:
    """Answer with HTML."""
    return web.Response(status=status, text=text, content_type="text/html", charset="utf-8")


def problem(status: int, text: str) -> web.Response:
    """Return a page with an error text."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = "Error"
    return html(str(render("problem.html", title=title, status=status, text=text)), status=status)


VIEWERS: Final = 200
VIEWERS_PER_USER: Final = 40
PAUSE_SECONDS: Final = 1.0
SILENCE_SECONDS: Final = 15.0


class Live:
    """Streams to all viewers: at most `limit`, and at most `per_user` to one user."""

    def __init__(
        self, context: Context, *, limit: int = VIEWERS, per_user: int = VIEWERS_PER_USER
    ) -> None:
        self._context = context
        self._places = StreamPlaces(limit=limit, per_user=per_user)
        self._tasks: set[asyncio.Task[object]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Stream the changes of the page with the address in the parameter `page`."""
        visitor = await self._context.access.visitor(request)
        with self._places.taken(visitor.name):
            page = await self._page(request)
            if page is None:
                raise web.HTTPNotFound(text="no such page")
            return await self._streamed(request, page)

    async def _streamed(self, request: web.Request, page: Page) -> web.StreamResponse:
        """Stream a page to a viewer until the viewer disconnects."""
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"
        self._tasks.add(task)
        try:
            await response.prepare(request)
            await self._stream(request, response, page)
        except (ConnectionError, TimeoutError, web.HTTPException):
            pass  # the viewer has disconnected, reads too slowly, or has lost access
        finally:
            self._tasks.discard(task)
        return response

    async def close(self, _: web.Application) -> None:
        """End all streams."""
        await cancel(self._tasks)

    async def _page(self, request: web.Request) -> Page | None:
        """Return the page of a visitor; raises HTTPException where the visitor has lost access."""
        visitor = await self._context.access.visitor(request)
        try:
            url = URL(request.query.get("page", "/"))
        except ValueError:
            return None
        if url.absolute:
            return None
        query = list(url.query.items())
        return resolve(url.path, query, context=self._context, scope=visitor.scope)

    async def _stream(self, request: web.Request, response: web.StreamResponse, page: Page) -> None:
        """Send the marks of the parts, then each part that changes, or a beat without a change.

        The visitor's access is checked before each turn. A page with other parts is loaded again.
        """
        made = await self._context.cache.parts(page)
        await send_event(response, "marks", made.marks)
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            if not await self._until_changed(page, made):
                await send_event(response, "beat", {})
            found = await self._page(request)
            if found is None:
                return
            page, known, made = found, made.marks, await self._context.cache.parts(found)
            if made.marks.keys() != known.keys():
                await send_event(response, "reload", made.marks)
                continue
            changed = {
                name: made.html[name] for name, each in made.marks.items() if known[name] != each
            }
            if changed:
                await send_event(response, "parts", changed)

    async def _until_changed(self, page: Page, made: Made) -> bool:
        """Wait until a page has changed; return False when time is up."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                while page.version() == made.version:
                    await self._context.world.changed()
        except TimeoutError:
            return False
        return True
