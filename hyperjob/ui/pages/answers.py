"""Answers to requests for pages."""

from collections.abc import Sequence
from http import HTTPStatus

from aiohttp import web

from hyperjob.ui.context import Context
from hyperjob.ui.pages.page import Page
from hyperjob.ui.pages.resolve import resolve
from hyperjob.ui.render import render
from hyperjob.ui.visitor import VISITOR, Visitor

_OLDEST_SECONDS = 20.0


def pages(context: Context) -> Sequence[web.RouteDef]:
    """Give the routes of all pages."""

    async def show(request: web.Request) -> web.StreamResponse:
        visitor = request[VISITOR]
        page = resolve(
            request.path, list(request.query.items()), world=context.world, scope=visitor.scope
        )
        if page is None:
            raise web.HTTPNotFound(text=f"There is no page {request.path}.")
        return html(whole(context, page, visitor))

    return [web.get("/{path:.*}", show)]


def whole(context: Context, page: Page, visitor: Visitor) -> str:
    """Make a whole page."""
    made = context.cache.parts(page, oldest=_OLDEST_SECONDS)
    return str(
        render(
            page.template,
            page=page,
            parts=made.html,
            marks=made.marks,
            world=context.world,
            visitor=visitor,
        )
    )


def html(text: str, *, status: int = 200) -> web.Response:
    """Answer with HTML."""
    return web.Response(status=status, text=text, content_type="text/html", charset="utf-8")


def problem(status: int, text: str) -> web.Response:
    """Answer that something is wrong, in words."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = "Error"
    return html(str(render("problem.html", title=title, status=status, text=text)), status=status)
