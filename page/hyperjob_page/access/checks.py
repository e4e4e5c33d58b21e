"""The checks of every request: Host, Origin, Sec-Fetch-Site and the token of a form.

A page of another site must not read this page (after DNS rebinding, Host has the other site's
name), and must not act through a visitor's browser (Origin and Sec-Fetch-Site name the other site).
A failed check raises an aiohttp exception, of whose text the server makes a page.
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from yarl import URL

from hyperjob_page.render import render

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
"""Methods that only read."""


def refused(method: str, headers: Mapping[str, str], hosts: Collection[str]) -> str:
    """Return why a request is refused; empty for an allowed request.

    `hosts` are names, or names with a port, under which visitors reach the page; a name alone is
    allowed with every port.
    """
    host = headers.get("Host", "")
    if not is_known(host, hosts):
        return "the page is not served under this host name"
    origin = headers.get("Origin")
    if origin is not None and origin != "null" and is_known(_netloc(origin), {host, *hosts}):
        return ""
    site = headers.get("Sec-Fetch-Site", "none")
    if method in SAFE_METHODS:
        # A link of another site may open the page; its scripts and forms may not.
        if site in ("none", "same-origin") or headers.get("Sec-Fetch-Mode") == "navigate":
            return ""
        return "the request comes from a page of another site"
    # A browser that sends no Origin still sends Sec-Fetch-Site, which excludes another site.
    if site == "same-origin" and origin == "null":
        return ""
    if origin is not None or site not in ("none", "same-origin"):
        return "the request comes from another site"
    return ""


def is_known(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header (`name`, `name:port`, `[::1]:port`) is among those allowed."""
    whole = host.lower()
    return bool(whole) and (whole in hosts or _without_port(whole) in hosts)


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser opens a page, and can show an answer in HTML."""
    mode = headers.get("Sec-Fetch-Mode")
    if mode is not None:
        return method in SAFE_METHODS and mode == "navigate"
    return method in SAFE_METHODS and "text/html" in headers.get("Accept", "")


def came_by_a_link(headers: Mapping[str, str]) -> bool:
    """Return whether a link of another site opened the page, without the SameSite=Strict cookie."""
    return headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and (
        headers.get("Sec-Fetch-Mode") == "navigate"
    )


def local_path(given: str) -> str:
    """Return `given` if it is a path on this server, else `/`, against open redirects."""
    if not given.startswith("/") or given.startswith(("//", "/\\")) or not given.isprintable():
        return "/"
    return given


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


FIELD: Final = "csrf"
"""Name of the form field."""
HEADER: Final = "X-CSRF-Token"
"""Name of the header that scripts may send in place of the field."""


class Csrf:
    """Makes a token for each session, which processes with the same secret accept."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def token(self, session: str) -> str:
        """Return the token of a session."""
        return hmac.new(
            self._secret, session.encode(errors="surrogatepass"), hashlib.sha256
        ).hexdigest()

    def accepts(self, session: str, given: str) -> bool:
        """Return whether a token is that of the session."""
        return same(self.token(session), given)


def same(one: str, other: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(*(text.encode(errors="surrogatepass") for text in (one, other)))


def refusal(status: int, why: str) -> web.HTTPException:
    """Return an HTTP error with a status and a text for the visitor."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return _BY_STATUS[status](text=why, headers=headers)


def reload(request: web.BaseRequest) -> web.HTTPException:
    """Return a page that opens the same address again: the browser then sends the cookie."""
    text = render("reload.html", address=local_path(request.path_qs))
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


_FORM: Final = "application/x-www-form-urlencoded"


def check_site(request: web.Request, hosts: Collection[str]) -> None:
    """Raise for a request with another Host, or from a page of another site."""
    if why := refused(request.method, request.headers, hosts):
        raise refusal(403, why)


async def check_form(request: web.Request, csrf: Csrf, session: str, *, read_only: bool) -> None:
    """Raise 403 for a change of a read-only page, or without the token of this session.

    A change is a request of any method but GET and HEAD. Its token is in the header HEADER, else in
    the form field FIELD. Raises also as `form_fields` does.
    """
    if request.method in SAFE_METHODS:
        return
    if read_only:
        raise refusal(403, "this page is read-only: hyperjob ui runs with --read-only")
    given = request.headers.get(HEADER, "")
    if not given:
        given = (await form_fields(request)).get(FIELD, "")
    if not csrf.accepts(session, given):
        why = "the form has expired or is not of this page: go back, reload the page and try again"
        raise refusal(403, why)


async def form_fields(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form, without any for a body of another type.

    Raises 400 for a form that its charset cannot decode, and 413 for a body above the limit.
    """
    if request.content_type != _FORM:
        return {}
    try:
        form = await request.post()
    except (LookupError, ValueError) as error:
        raise refusal(400, "the form cannot be read in the charset of its Content-Type") from error
    return {name: str(form[name]) for name in form}
