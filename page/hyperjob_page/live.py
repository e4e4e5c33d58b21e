"""Server-sent events: send the changed parts of a page to each viewer, once a second at most.

A viewer has no queue of changes: it gets the newest parts at its next turn, and a slow viewer
skips the states between.
"""

import asyncio
from typing import Final

from aiohttp import web
from yarl import URL

from hyperjob_core.tasks import cancel
from hyperjob_page.pages.answers import Context, Made, Page, resolve
from hyperjob_page.places import StreamPlaces, send_event

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
