"""Answers that keep a visitor out, or lead them on; the server makes pages of the words."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from yarl import URL

from hyperjob.ui.access.checks import is_navigation
from hyperjob.ui.render import render


def refusal(status: int, why: str) -> web.HTTPException:
    """Refuse with a status and the reason in words."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return _BY_STATUS[status](text=why, headers=headers)


def reload(request: web.BaseRequest) -> web.HTTPException:
    """Open the same address once more from a page of ours: then a browser sends our cookie."""
    text = str(render("reload.html", address=request.path_qs))
    return web.HTTPOk(text=text, content_type="text/html")


def login_first(request: web.BaseRequest, path: str) -> web.HTTPException:
    """Redirect a browser to the login, and answer other clients 401 with a hint at the token."""
    if is_navigation(request.method, request.headers):
        return web.HTTPSeeOther(URL(path).with_query(next=request.path_qs))
    return refusal(401, "Log in, or send a bearer token.")


_BY_STATUS: Final[Mapping[int, type[web.HTTPError]]] = {
    401: web.HTTPUnauthorized,
    403: web.HTTPForbidden,
    503: web.HTTPServiceUnavailable,
}
