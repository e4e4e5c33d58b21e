"""Accept connections, with or without TLS, within bounds of number, bytes and time.

A connection counts from its acceptance, its TLS handshake included. All of them are in one line, by
the begin of their last request, before it by their acceptance and then by their handshake. Beyond a
bound the first in line is closed: who holds connections makes way for an API server, which asks.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

CONNECTIONS: Final = 512
"""More than the requests that API servers have in flight, below the open files of a process."""
UNANSWERED_BYTES: Final = 56 * 2**20
"""The most bytes of unanswered requests of all connections together."""
HEADER_SECONDS: Final = 5.0
"""From the acceptance of a connection to the end of its first header."""
QUIET_SECONDS: Final = 60.0
"""Seconds between two log lines about refused client certificates."""
_AT_A_TIME: Final = 32
"""Connections to accept before others have their turn: a burst must not pass all handshakes."""
_BACKLOG: Final = 512
_CLOSING_SECONDS: Final = 2.0
_STOP_SECONDS: Final = 2.0
_KEEPALIVE_SECONDS: Final = 75.0

_log = logging.getLogger(__name__)
HTTP_LOG: Final = logging.getLogger(f"{__name__}.http")
"""The log of aiohttp's server, without bytes that are no HTTP: their sender gets a 400."""
HTTP_LOG.addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
)


class Listener:
    """Listens on an address, and gives each connection to a protocol of `http`."""

    def __init__(
        self,
        http: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
        connections: int = CONNECTIONS,
        unanswered_bytes: int = UNANSWERED_BYTES,
        header_seconds: float = HEADER_SECONDS,
    ) -> None:
        self.http = http
        self.tls = tls
        self.header_seconds = header_seconds
        self._connections = connections
        self._unanswered_bytes = unanswered_bytes
        self.handshakes: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._line: dict[Connection, None] = {}
        self._server: asyncio.Server | None = None
        self._quiet_until = 0.0

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return address and port; raise OSError when listening fails."""
        bound = _bind(host, port)
        loop = asyncio.get_running_loop()
        # asyncio accepts `backlog` connections at a time; the kernel may keep more.
        self._server = await loop.create_server(
            lambda: Connection(self), sock=bound, backlog=_AT_A_TIME
        )
        bound.listen(_BACKLOG)
        address, found, *_ = bound.getsockname()
        return address, found

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    def abort(self) -> None:
        """Close all connections in line."""
        for connection in list(self._line):
            connection.abort()

    def enter(self, connection: "Connection") -> None:
        """Put a connection at the end of the line, and close the first of too many."""
        self.leave(connection)
        self._line[connection] = None
        if len(self._line) > self._connections:
            next(iter(self._line)).abort()

    def leave(self, connection: "Connection") -> None:
        """Take a connection out of the line, if it is there."""
        self._line.pop(connection, None)

    def count(self, connection: "Connection", size: int) -> None:
        """Set the unanswered bytes of a connection, and close the first ones of too many bytes."""
        self._bytes += size - connection.size
        connection.size = size
        if size and self._bytes > self._unanswered_bytes:
            for first in [one for one in self._line if one.size]:
                first.abort()
                if self._bytes <= self._unanswered_bytes:
                    return

    def failed(self, peer: object, error: OSError) -> None:
        """Log a failed handshake; any client can send a bad certificate: log it once a minute."""
        refused = isinstance(error, ssl.SSLError) and "CERTIFICATE" in (error.reason or "")
        now = asyncio.get_running_loop().time()
        loud = refused and now >= self._quiet_until
        if loud:
            self._quiet_until = now + QUIET_SECONDS
        message = "client certificate refused" if refused else "TLS handshake failed"
        more = {"peer": str(peer), "reason": str(error)}
        _log.log(logging.WARNING if loud else logging.DEBUG, message, extra=more)


class Connection(asyncio.Protocol):
    """A connection: its TLS handshake, then the bytes of its requests for aiohttp's protocol."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._http = listener.http()
        self.pause_writing = self._http.pause_writing  # type: ignore[method-assign]
        self.resume_writing = self._http.resume_writing  # type: ignore[method-assign]
        self._early: bytes | None = b""
        self._held = False
        self.size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Enter the line, and begin the TLS handshake."""
        loop = asyncio.get_running_loop()
        self._transport = cast("asyncio.Transport", transport)
        self._header_end = loop.call_later(self._listener.header_seconds, self.abort)
        self._listener.enter(self)
        if self._listener.tls is None:
            self._begin()
        else:
            handshake = loop.create_task(self._shake_hands(self._listener.tls))
            self._listener.handshakes.add(handshake)
            handshake.add_done_callback(self._listener.handshakes.discard)

    async def _shake_hands(self, tls: ssl.SSLContext) -> None:
        start = asyncio.get_running_loop().start_tls
        secure = None
        try:
            secure = await start(
                self._transport, self, tls, server_side=True, ssl_shutdown_timeout=_CLOSING_SECONDS
            )
        except OSError as error:  # TLS errors and timeouts are OSErrors too
            self._listener.failed(self._transport.get_extra_info("peername"), error)
        if secure is None:
            self.connection_lost(None)
        else:
            self._transport = secure
            self._begin()

    def _begin(self) -> None:
        """Pass the connection on, with the request that came beside the end of the handshake."""
        self._listener.enter(self)
        early, self._early = self._early, None
        self._http.connection_made(self._transport)
        if early:
            self._http.data_received(early)

    def data_received(self, data: bytes) -> None:
        """Count the bytes, and pass them on."""
        self._listener.count(self, self.size + len(data))
        if self._early is None:
            self._http.data_received(data)
        else:
            self._early += data

    def asked(self) -> None:
        """Record that the header of a request is complete."""
        self._header_end.cancel()
        self._listener.enter(self)

    def hold(self) -> None:
        """Close the connection for no other one, until its answer."""
        self._held = True
        self._listener.leave(self)

    def answered(self) -> None:
        """Record the answer of a request."""
        self._listener.count(self, 0)
        if self._held and not self._transport.is_closing():
            self._listener.enter(self)
        self._held = False

    def abort(self) -> None:
        """End the connection at once, without the shutdown messages of TLS."""
        self._transport.abort()
        self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget()
        self._http.connection_lost(exc)

    def _forget(self) -> None:
        self._header_end.cancel()
        self._listener.leave(self)
        self._listener.count(self, 0)


def connection_of(request: web.BaseRequest) -> Connection | None:
    """Return the connection of a request; None if it is lost or another server's."""
    transport = request.transport
    found = transport.get_protocol() if transport is not None else None
    return found if isinstance(found, Connection) else None


@web.middleware
async def in_line(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Record begin and end of a request at its connection."""
    connection = connection_of(request)
    if connection is None:
        return await handler(request)
    connection.asked()
    try:
        return await handler(request)
    finally:
        connection.answered()


@asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    connections: int = CONNECTIONS,
    header_seconds: float = HEADER_SECONDS,
    other: bool = False,
) -> AsyncIterator[tuple[str, int]]:
    """Serve an application for the length of the block; yield address and port.

    `other`: at any free port where `port` is in use. Raises OSError when listening fails.
    """
    runner = web.AppRunner(
        app,
        access_log=None,  # it would have the token of an address
        logger=HTTP_LOG,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        shutdown_timeout=_STOP_SECONDS,
    )
    await runner.setup()
    server = runner.server
    assert server is not None, "the runner is set up"
    listener = Listener(server, tls=tls, connections=connections, header_seconds=header_seconds)
    try:
        try:
            found = await listener.open(host, port)
        except OSError as error:
            if not (other and error.errno == errno.EADDRINUSE):
                raise
            found = await listener.open(host, 0)
        yield found
    finally:
        listener.close()
        async with asyncio.timeout(2 * _STOP_SECONDS):
            await runner.cleanup()
        listener.abort()


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to a host; an empty host or :: is every address of the machine."""
    if host in ("", "::"):
        if socket.has_dualstack_ipv6():
            every = ("", port)
            return socket.create_server(every, family=socket.AF_INET6, dualstack_ipv6=True)
        host = ""  # a machine without IPv6
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)
