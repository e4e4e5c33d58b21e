"""A small scripted API server over real TLS: each path answers what its test says."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme
from aiohttp import web

from hyperjob_core.kube.client import Kube
from tests.support.kubeconfigs import write_kubeconfig

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STOP = web.AppKey("stop", asyncio.Event)


def reply(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=headers)

    return handler


def text(body: str, *, status: int) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text=body, status=status)

    return handler


def failure(code: int, reason: str, message: str = "", **headers: str) -> Handler:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "code": code,
    }
    return reply(body, status=code, headers={k.replace("_", "-"): v for k, v in headers.items()})


def reset() -> Handler:
    """Break the connection without an answer."""

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport
        request.transport.abort()
        return web.Response()

    return handler


def stream(*lines: Any, then: str = "close") -> Handler:
    """Send the lines of a watch, then `close`, `reset` or `hang`."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for line in lines:
            await response.write((line if isinstance(line, bytes) else orjson.dumps(line)) + b"\n")
        if then == "reset":
            assert request.transport
            request.transport.abort()
        elif then == "hang":
            await request.app[STOP].wait()
        return response

    return handler


@dataclass
class Seen:
    """A request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    user: str

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Server:
    """Answers each path with its scripted handlers in turn, the last one for ever."""

    scripts: dict[str, list[Handler]] = field(default_factory=lambda: defaultdict(list))
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    folder: Path = Path()
    kubeconfig: Path = Path()
    peers: set[Any] = field(default_factory=set)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    reply = staticmethod(reply)
    text = staticmethod(text)
    failure = staticmethod(failure)
    reset = staticmethod(reset)
    stream = staticmethod(stream)

    def on(self, path: str, *handlers: Handler) -> None:
        self.scripts[path] += handlers

    async def until(self, count: int) -> None:
        """Wait for the request of this number."""
        async with asyncio.timeout(30), self.arrived:
            await self.arrived.wait_for(lambda: len(self.seen) >= count)

    def write_kubeconfig(self, user: dict[str, Any], *, name: str = "kubeconfig") -> Path:
        path = self.folder / name
        return write_kubeconfig(path, self.url, user=user, certificate_authority="ca.pem")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        self.peers.add(request.transport.get_extra_info("peername"))
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                {k.lower(): v for k, v in request.headers.items()},
                await request.read(),
                _common_name(request.transport.get_extra_info("peercert")),
            )
        )
        async with self.arrived:
            self.arrived.notify_all()
        script = self.scripts[request.path]
        if not script:
            return await failure(404, "NotFound", "not found")(request)
        handler = script.pop(0) if len(script) > 1 else script[0]
        return await handler(request)


def _common_name(certificate: Any) -> str:
    fields = [pair for names in (certificate or {}).get("subject", ()) for pair in names]
    return dict(fields).get("commonName", "")


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Server]:
    """Run a server that takes only clients with a certificate of its own authority."""
    authority = trustme.CA()
    server = Server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    app = web.Application(client_max_size=2**26)
    app[STOP] = asyncio.Event()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"https://127.0.0.1:{port}"
    client = authority.issue_cert("admin@example.dev", common_name="admin")
    (folder / "ca.pem").write_bytes(authority.cert_pem.bytes())
    (folder / "client.pem").write_bytes(client.cert_chain_pems[0].bytes())
    (folder / "client.key").write_bytes(client.private_key_pem.bytes())
    server.folder = folder
    server.kubeconfig = server.write_kubeconfig(
        {"client-certificate": "client.pem", "client-key": "client.key"}
    )
    try:
        yield server
    finally:
        app[STOP].set()
        await runner.cleanup()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def kube(server: Server) -> AsyncIterator[Kube]:
    async with Kube.connect(kubeconfig=server.kubeconfig, time_limit=10) as client:
        yield client
