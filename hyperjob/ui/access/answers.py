"""Answers that keep a visitor out, or lead them on.

Scripts and commands get words, browsers that open a page get a page.
"""

import html
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from aiohttp import web

from hyperjob.ui.access.checks import is_navigation

_STYLE: Final = "/static/ui.css"


def page(title: str, body: str, *, head: str = "") -> str:
    """Build a whole page of its own; `body` and `head` are HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)} · HyperJob</title><link rel="stylesheet" href="{_STYLE}">'
        f'{head}</head><body><main class="access"><h1>{html.escape(title)}</h1>{body}</main>'
        "</body></html>"
    )


def refusal(request: web.BaseRequest, status: int, why: str) -> web.HTTPException:
    """Refuse with a status and the reason in words."""
    kind = _BY_STATUS[status]
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    if is_navigation(request.method, request.headers):
        body = f'<p role="alert">{html.escape(why)}</p>'
        text = page(HTTPStatus(status).phrase, body)
        return kind(text=text, content_type="text/html", headers=headers)
    return kind(text=f"{why}\n", headers=headers)


def reload(request: web.BaseRequest) -> web.HTTPException:
    """Open the same address once more from a page of ours: then a browser sends our cookie."""
    where = html.escape(request.path_qs, quote=True)
    head = f'<meta http-equiv="refresh" content="0; url={where}">'
    body = f'<p><a href="{where}">Go on</a></p>'
    return web.HTTPOk(text=page("HyperJob", body, head=head), content_type="text/html")


def login_first(request: web.BaseRequest) -> web.HTTPException:
    """Lead a browser to the login, and tell others that they need a token."""
    if is_navigation(request.method, request.headers):
        return web.HTTPSeeOther(f"/login?next={quote(request.path_qs, safe='')}")
    return refusal(request, 401, "log in, or send a bearer token")


_BY_STATUS: Final[Mapping[int, type[web.HTTPError]]] = {
    401: web.HTTPUnauthorized,
    403: web.HTTPForbidden,
    503: web.HTTPServiceUnavailable,
}
