"""The HTTP connections of the webhook: time limits, sizes, and the refusal of malformed requests.

The module extends aiohttp's low-level server, which is a tenth faster than its applications.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from hyperjob_core.serving.table import Connection, ConnectionTable, Rank
from hyperjob_webhook.admission import Reply, fail, refuse
from hyperjob_webhook.review import MAX_BODY_BYTES

KEEPALIVE_SECONDS: Final = 120.0
"""Longer than the 90 s after which an API server closes an idle connection itself."""
HEADER_SECONDS: Final = 5.0
"""From the first byte of a request to the end of its header."""
MAX_HEADER_BYTES: Final = 32 * 1024
"""The greatest header; an API server sends a few hundred bytes, with a token some thousand."""
LINGER_SECONDS: Final = 2.0
"""How long the webhook reads on after a refusal, which the sender then receives."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Reporter(Protocol):
    """Logs and counts every request."""

    def started(self, webhook: str) -> None:
        """Record the arrival of a request."""
        ...

    def done(self, webhook: str, reply: Reply, seconds: float) -> None:
        """Record the reply to a request and its duration in seconds."""
        ...


def as_response(reply: Reply, *, close: bool) -> web.Response:
    """Return a reply as an aiohttp response; with `close` the connection ends after it."""
    response = web.Response(
        body=reply.body, status=reply.status, headers={"Content-Type": "application/json"}
    )
    if close:
        response.force_close()
    return response


class WebhookProtocols(web.Server):
    """aiohttp's low-level server, whose connections have a time limit for each header."""

    def __init__(
        self,
        handler: Handler,
        *,
        table: ConnectionTable,
        reporter: Reporter,
        header_seconds: float,
    ) -> None:
        super().__init__(handler, request_factory=_make_request)
        self._table = table
        self._reporter = reporter
        self._header_seconds = header_seconds
        self._loop = asyncio.get_running_loop()
        self._headers: dict[ReviewProtocol, float] = {}
        self._expiry: asyncio.TimerHandle | None = None

    def connect(self, connection: Connection) -> "ReviewProtocol":
        """Return the protocol of a new connection."""
        return ReviewProtocol(self, connection, table=self._table, reporter=self._reporter)

    def header_begins(self, protocol: "ReviewProtocol") -> None:
        """Start the time limit of a header, unless it runs already."""
        if protocol in self._headers:
            return
        self._headers[protocol] = until = self._loop.time() + self._header_seconds
        if self._expiry is None:
            self._expiry = self._loop.call_at(until, self._expire)

    def header_ends(self, protocol: "ReviewProtocol") -> None:
        """Stop the time limit: the header is complete, or the connection is closed."""
        self._headers.pop(protocol, None)

    def _expire(self) -> None:
        self._expiry = None
        now = self._loop.time()
        for protocol, until in list(self._headers.items()):
            if until > now:
                self._expiry = self._loop.call_at(until, self._expire)
                return
            del self._headers[protocol]
            protocol.abort()

    async def shutdown(self, timeout: float | None = None) -> None:
        """Close every connection and stop the timer of headers."""
        await super().shutdown(timeout)
        if self._expiry is not None:
            self._expiry.cancel()


class ReviewProtocol(RequestHandler):
    """One connection; bytes that are not HTTP are refused and logged like any bad request."""

    __slots__ = (
        "_connection",
        "_header_bytes",
        "_held",
        "_idle",
        "_known",
        "_owner",
        "_reporter",
        "_table",
    )

    def __init__(
        self,
        server: WebhookProtocols,
        connection: Connection,
        *,
        table: ConnectionTable,
        reporter: Reporter,
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # None is aiohttp's way to have none
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            read_bufsize=64 * 1024,
            auto_decompress=False,
        )
        self._owner = server
        self._connection = connection
        self._table = table
        self._reporter = reporter
        self._idle = True
        self._known = False
        self._held = False
        self._header_bytes = 0

    @property
    def peer(self) -> str:
        """The name under which the peer is counted."""
        return self._connection.peer

    def data_received(self, data: bytes) -> None:
        """Parse bytes; between requests they are a header, with its own limits."""
        super().data_received(data)
        if self._idle and data:
            self._owner.header_begins(self)
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                # aiohttp starts the request of a complete header in an earlier callback.
                asyncio.get_running_loop().call_soon(self._end_long_header)

    def _end_long_header(self) -> None:
        if self._idle:
            self.abort()

    def request_begins(self) -> None:
        """Record that the header is complete and its request starts."""
        self._idle = False
        self._header_bytes = 0
        self._owner.header_ends(self)

    def pause_reading(self) -> None:
        """Pause reading: the body has more bytes than its reader has taken."""
        self._held = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume reading if it was paused; aiohttp calls this twice per body in any case."""
        if self._held:
            self._held = False
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Drop the connection."""
        self._owner.header_ends(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """End the connection at once, without the shutdown messages of TLS."""
        if self.transport is not None:
            self.transport.abort()

    def body_begins(self) -> None:
        """Record that the request waits for the rest of its body."""
        rank = Rank.KNOWN_SENDING if self._known else Rank.NEW_SENDING
        self._table.move(self._connection, rank)

    def answer_begins(self) -> None:
        """Record that the decision about a review has begun."""
        self._table.move(self._connection, Rank.BUSY)

    def request_ends(self, *, answered: bool, read: bool) -> None:
        """Record the end of a request: whether it was answered, and its body read to the end."""
        self._idle = read
        self._known = self._known or answered
        self._table.move(self._connection, Rank.KNOWN if self._known else Rank.NEW)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a request that the parser refused or the server failed on."""
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
    cast("ReviewProtocol", protocol).request_begins()
    return web.BaseRequest(
        message,
        payload,
        protocol,
        writer,
        task,
        asyncio.get_running_loop(),
        client_max_size=MAX_BODY_BYTES,
    )
