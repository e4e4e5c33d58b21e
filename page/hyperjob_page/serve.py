"""Serve the page: to visitors of a host, or to this machine with the rights of one kubeconfig.

The server has routes, security headers and errors; other modules make the pages.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from hyperjob_core.kube.client import Kube
from hyperjob_core.serving.listener import connection_of, in_line, listening
from hyperjob_core.telemetry.endpoints import Addresses, Checks, serve
from hyperjob_page.access.local import LocalAccess
from hyperjob_page.measures import counted
from hyperjob_page.pages.answers import Context, pages, problem
from hyperjob_page.pages.one import about_one
from hyperjob_page.render import static
from hyperjob_page.visitor import VISITOR
from hyperjob_page.world import LiveState

LOOPBACK: Final = "127.0.0.1"


@asynccontextmanager
async def metrics_served(address: str, directory: Path | None) -> AsyncIterator[Addresses]:
    """Serve /metrics at an address, by HTTPS with the certificate of a directory; `0`: nowhere.

    Raises OSError with the flag: the address is in use, or the certificate is unusable.
    """
    async with AsyncExitStack() as stack:
        protected = None
        if directory is not None and address != "0":
            from hyperjob_certs.metrics import protection  # a slow import

            serving_pair = protection(directory, user_agent="hyperjob-ui")
            protected = await stack.enter_async_context(serving_pair)
        none = Checks("healthz")
        endpoints = serve(
            healthz=none,
            readyz=none,
            health_address="0",
            metrics_address=address,
            protection=protected,
        )
        yield await stack.enter_async_context(endpoints)


@asynccontextmanager
async def served_here(kube: Kube) -> AsyncIterator[str]:
    """Serve on a free port for the length of the block; yield the address with its token."""
    async with (
        LiveState(kube).running() as world,
        LocalAccess(kube) as access,
        listening(make_app(Context(world=world, access=access)), LOOPBACK, 0) as (_, port),
    ):
        yield access.listens_on(LOOPBACK, port)


log = logging.getLogger(__name__)

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers would send no Origin with this page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Server": "hyperjob",
}
"""The security headers of every answer, which restrict the browser."""
_LARGEST_FORM: Final = 64 * 1024
_HEALTH: Final = "/healthz"
_FILE: Final = "/static/{name}"
_STATIC: Final[Mapping[str, str]] = {
    "ui.css": "text/css",
    "ui.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def make_app(context: Context) -> web.Application:
    """Return the aiohttp application; the caller runs `context.world`."""
    app = web.Application(
        client_max_size=_LARGEST_FORM, middlewares=[in_line, counted, _errors, _visited(context)]
    )
    app.add_routes([web.get(_HEALTH, _healthz(context)), web.get(_FILE, _static)])
    app.add_routes(context.access.routes())
    app.add_routes(about_one(context))
    app.add_routes(pages(context))
    app.on_response_prepare.append(_add_headers)
    return app


async def _add_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = HEADERS["Server"]  # aiohttp has set its own name and version


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error with a page that has the reason."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400 or error.content_type == "text/html":
            raise
        response = problem(error.status, error.text or "")
        for name in ("Set-Cookie", "WWW-Authenticate", "Retry-After", "Allow"):
            if name in error.headers:
                response.headers[name] = error.headers[name]
        return response
    except Exception:
        log.exception("Rendering a page failed", extra={"path": request.path})
        return problem(500, "Rendering the page failed; the log of hyperjob ui has the error.")


def _visited(context: Context) -> Middleware:
    """Return the middleware that identifies the visitor before a page is made."""

    @web.middleware
    async def visited(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        open_ = resource is not None and resource.canonical in (_HEALTH, _FILE)
        if not open_ and request.path not in context.access.public:
            request[VISITOR] = await context.access.visitor(request)
            if (connection := connection_of(request)) is not None:
                connection.hold()
        return await handler(request)

    return visited


def _healthz(context: Context) -> Handler:
    async def healthz(_: web.Request) -> web.StreamResponse:
        if not context.world.is_synced:
            return web.Response(status=503, text="not synced\n")
        return web.Response(text="ok\n")

    return healthz


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name not in _STATIC:
        raise web.HTTPNotFound(text="no such file")
    return web.Response(
        body=static(name),
        content_type=_STATIC[name],
        charset="utf-8",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )
