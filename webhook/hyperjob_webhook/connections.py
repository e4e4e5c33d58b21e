"""The HTTP connections and request bodies of the webhook, bounded in number, time and memory.

If too many bodies are being read or wait for a decision, the oldest body of the peer with the most
is dropped: the body of a review arrives within milliseconds, a body that is sent slowly or without
an end becomes old.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
MEMORY_BYTES: Final = 8 * MAX_BODY_BYTES
"""The greatest size of all bodies of a process together, in bytes."""

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

    def connect(self, connection: Connection) -> "ReviewProtocol":
        """Return the protocol of a new connection."""
        return ReviewProtocol(
            self,
            connection,
            table=self._table,
            reporter=self._reporter,
            header_seconds=self._header_seconds,
        )


class ReviewProtocol(RequestHandler):
    """One connection; bytes that are not HTTP are refused and logged like any bad request."""

    __slots__ = (
        "_connection",
        "_header_bytes",
        "_header_end",
        "_header_seconds",
        "_idle",
        "_known",
        "_paused_by_body",
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
        header_seconds: float,
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
        self._connection = connection
        self._table = table
        self._reporter = reporter
        self._idle = True
        self._known = False
        self._paused_by_body = False
        self._header_bytes = 0
        self._header_seconds = header_seconds
        self._header_end: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> str:
        """The name under which the peer is counted."""
        return self._connection.peer

    def data_received(self, data: bytes) -> None:
        """Parse bytes; between requests they are a header, with its own limits."""
        super().data_received(data)
        if self._idle and data:
            loop = asyncio.get_running_loop()
            if self._header_end is None:
                self._header_end = loop.call_later(self._header_seconds, self._expire)
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                # aiohttp starts the request of a complete header in an earlier callback.
                loop.call_soon(self._end_long_header)

    def _expire(self) -> None:
        self._header_end = None
        self.abort()

    def _end_header(self) -> None:
        if self._header_end is not None:
            self._header_end.cancel()
            self._header_end = None

    def _end_long_header(self) -> None:
        if self._idle:
            self.abort()

    def request_begins(self) -> None:
        """Record that the header is complete and its request starts."""
        self._idle = False
        self._header_bytes = 0
        self._end_header()

    def pause_reading(self) -> None:
        """Pause reading: the body has more bytes than its reader has taken."""
        self._paused_by_body = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume reading if it was paused: aiohttp asks for it, and parses again, at every read."""
        if self._paused_by_body:
            self._paused_by_body = False
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Drop the connection."""
        self._end_header()
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


class BodyTooLarge(Exception):  # noqa: N818 - a verdict on what was sent
    """One body is larger than any review."""


@dataclass(slots=True, eq=False)
class Body:
    """One body; `size` is the number of bytes that have arrived."""

    peer: str
    deadline: asyncio.Timeout
    size: int = 0
    gave_way: bool = False


class Bodies:
    """The bodies of one server that have no decision yet."""

    def __init__(self, *, at_a_time: int, memory_bytes: int = MEMORY_BYTES) -> None:
        self._at_a_time = at_a_time
        self._memory_bytes = memory_bytes
        self._bodies: dict[Body, None] = {}
        self._size = 0

    @contextmanager
    def taken(self, body: Body) -> Iterator[None]:
        """Count a body while inside the context; its `deadline` passes at once if it is dropped."""
        if len(self._bodies) >= self._at_a_time:
            self._give_way(by_size=False)
        self._bodies[body] = None
        try:
            yield
        finally:
            self.release(body)

    async def read(self, body: Body, content: StreamReader) -> bytes:
        """Read a body to its end; raise `BodyTooLarge`, or the error of the connection."""
        pieces: list[bytes] = []
        while piece := await content.readany():
            if body.gave_way:
                await asyncio.sleep(0)  # raises TimeoutError, because the deadline has passed
            body.size += len(piece)
            self._size += len(piece)
            if body.size > MAX_BODY_BYTES:
                raise BodyTooLarge
            pieces.append(piece)
            while self._size > self._memory_bytes:
                self._give_way(by_size=True)
            if body.gave_way:
                await asyncio.sleep(0)
        return b"".join(pieces)

    def release(self, body: Body) -> None:
        """Stop counting a body, before its decision or when it is dropped."""
        if body in self._bodies:
            del self._bodies[body]
            self._size -= body.size

    def _give_way(self, *, by_size: bool) -> None:
        """Drop the oldest body of the peer with the most bodies, or `by_size` with the most bytes.

        Its deadline passes at once, and its reader raises TimeoutError at the next await.
        """
        weights: Counter[str] = Counter()
        for body in self._bodies:
            weights[body.peer] += body.size if by_size else 1
        ((heaviest, _),) = weights.most_common(1)
        victim = next(body for body in self._bodies if body.peer == heaviest)
        victim.gave_way = True
        self.release(victim)
        victim.deadline.reschedule(asyncio.get_running_loop().time())
