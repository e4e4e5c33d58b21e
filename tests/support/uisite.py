"""A minimal page behind an Access, which shows the visitor's name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from hyperjob_page.visitor import VISITOR, VisitorAccess

DONE = web.AppKey("done", list)


def site(access: VisitorAccess) -> web.Application:
    """Return GET /who, POST /do, and the routes of `access`; `app[DONE]` has /do's visitors."""

    @web.middleware
    async def let_in(request, handler):
        if request.path not in access.public:
            request[VISITOR] = await access.visitor(request)
        return await handler(request)

    async def who(request):
        visitor = request[VISITOR]
        return web.json_response(
            {
                "name": visitor.name,
                "csrf": visitor.csrf,
                "scope": repr(visitor.scope),
                "namespaces": None
                if visitor.scope.namespaces is None
                else sorted(visitor.scope.namespaces),
                "may": await visitor.may("patch", "team", "llm"),
            }
        )

    async def do(request):
        request.app[DONE].append(request[VISITOR].name)
        return web.Response(text="done")

    app = web.Application(middlewares=[let_in], client_max_size=64 * 1024)
    app[DONE] = []
    app.add_routes([web.get("/who", who), web.post("/do", do), *access.routes()])
    return app


@asynccontextmanager
async def visited(access: VisitorAccess, *, port: int | None = None) -> AsyncIterator[TestClient]:
    """Serve the page; yield a client that keeps no cookies."""
    server = TestServer(site(access), host="127.0.0.1", port=port)
    await server.start_server(access_log=None)
    async with TestClient(server, cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield client
