"""Responses that refuse or redirect a visitor; the server makes pages of their texts."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from yarl import URL

from hyperjob_page.access.checks import is_navigation, local_path
from hyperjob_page.render import render


def refusal(status: int, why: str) -> web.HTTPException:
    """Return an HTTP error with a status and a text for the visitor."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return _BY_STATUS[status](text=why, headers=headers)


def reload(request: web.BaseRequest) -> web.HTTPException:
    """Return a page that opens the same address again: the browser then sends the cookie."""
    text = str(render("reload.html", address=local_path(request.path_qs)))
    return web.HTTPOk(text=text, content_type="text/html")


def login_first(request: web.BaseRequest, path: str) -> web.HTTPException:
    """Return a redirect of browsers to the login, and 401 for other clients."""
    if is_navigation(request.method, request.headers):
        return web.HTTPSeeOther(URL(path).with_query(next=local_path(request.path_qs)))
    return refusal(401, "Log in, or send a bearer token.")


_BY_STATUS: Final[Mapping[int, type[web.HTTPError]]] = {
    400: web.HTTPBadRequest,
    401: web.HTTPUnauthorized,
    403: web.HTTPForbidden,
    503: web.HTTPServiceUnavailable,
}
