"""Connections below the requests: how many, how long, and what happens to what is no HTTP.

Extends aiohttp's low-level server, which is a tenth faster than its applications; knows nothing of
admission but how a refusal is written.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from webhook.admission import Reply, fail, refuse
from webhook.review import MAX_BODY_BYTES

KEEPALIVE_SECONDS: Final = 120.0
"""Longer than the 90 s after which an API server drops an idle connection: never our doing."""
LINGER_SECONDS: Final = 2.0
"""How long the rest of a refused body is read, so that its sender gets to see the refusal."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Reporter(Protocol):
    """Is told of every request; logs and counts."""

    def started(self, webhook: str) -> None:
        """Note that a request has arrived."""
        ...

    def done(self, webhook: str, reply: Reply, seconds: float) -> None:
        """Note the answer to a request and how long it took."""
        ...


def as_response(reply: Reply, *, close: bool) -> web.Response:
    """Return a reply as aiohttp sends it; with `close` it is the last of its connection."""
    response = web.Response(
        body=reply.body, status=reply.status, headers={"Content-Type": "application/json"}
    )
    if close:
        response.force_close()
    return response


class BoundedServer(web.Server):
    """aiohttp's low-level server, with a bound on connections and on bodies."""

    def __init__(self, handler: Handler, *, max_connections: int, reporter: Reporter) -> None:
        super().__init__(handler, request_factory=_make_request)
        self._max_connections = max_connections
        self._reporter = reporter
        self._open = 0

    def __call__(self) -> RequestHandler:
        """Make the protocol of a new connection."""
        return _Connection(self, reporter=self._reporter)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection in, and hang up on one too many."""
        self._open += 1
        super().connection_made(handler, transport)
        if self._open > self._max_connections:
            transport.abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Count a connection out."""
        self._open -= 1
        super().connection_lost(handler, exc)


class _Connection(RequestHandler):
    """One connection; what is no HTTP is refused and reported like any other bad request."""

    __slots__ = ("_reporter",)

    def __init__(self, server: web.Server, *, reporter: Reporter) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # None is aiohttp's way to have none
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            read_bufsize=64 * 1024,
            auto_decompress=False,
        )
        self._reporter = reporter

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what the parser refused, or what the shell itself failed on."""
        if status == 400:
            reply = refuse(400, f"no HTTP request: {(message or '').partition(chr(10))[0][:200]}")
        else:
            reply = fail(exc if isinstance(exc, Exception) else RuntimeError(f"HTTP {status}"))
        self._reporter.started("unknown")
        self._reporter.done("unknown", reply, 0.0)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        return as_response(reply, close=True)


def _make_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    return web.BaseRequest(
        message,
        payload,
        protocol,
        writer,
        task,
        asyncio.get_running_loop(),
        client_max_size=MAX_BODY_BYTES,
    )
