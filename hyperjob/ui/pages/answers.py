"""Answers to requests for pages."""

from collections.abc import Awaitable, Sequence
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from hyperjob.client.errors import words
from hyperjob.ui.pages.attention import lost, visible
from hyperjob.ui.pages.context import Context
from hyperjob.ui.pages.page import Page
from hyperjob.ui.pages.resolve import resolve
from hyperjob.ui.render import render
from hyperjob.ui.visitor import VISITOR, Visitor
from hyperjob_core.kube.errors import KubeError

_OLDEST_SECONDS: Final = 20.0
_HERE: Final = "<!-- body -->"


def pages(context: Context) -> Sequence[web.RouteDef]:
    """Return the routes of all pages that show only the world."""

    async def show(request: web.Request) -> web.StreamResponse:
        visitor = request[VISITOR]
        page = await resolve(
            request.path, list(request.query.items()), context=context, scope=visitor.scope
        )
        if page is None:
            raise web.HTTPNotFound(text=f"There is no page {request.path}.")
        return html(await whole(context, page, visitor))

    return [web.get("/{path:.*}", show)]


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
            needs=needs(context, visitor),
            **more,
        )
    )


def needs(context: Context, visitor: Visitor) -> int:
    """Return the number of HyperJobs, clusters and findings that need a person.

    The number includes only objects that the visitor may see.
    """
    lost_clusters = len(lost(context.world)) if visitor.scope.clusters else 0
    findings = len(context.attention.findings) if visitor.scope.namespaces is None else 0
    return len(visible(context.attention, visitor.scope)) + lost_clusters + findings


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
