"""Accept connections within the limits of a `ConnectionTable`, with or without TLS.

A connection counts from its acceptance, including its TLS handshake. The protocol of a connection
comes from a factory of the caller.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hyperjob_core.serving.table import Connection, ConnectionTable, peer_of

BACKLOG: Final = 512
HANDSHAKE_SECONDS: Final = 5.0
SHUTDOWN_SECONDS: Final = 2.0
ACCEPT_AT_A_TIME: Final = 64
"""Number of connections to accept before the event loop runs other callbacks."""
PAUSE_SECONDS: Final = 1.0
"""Pause in accepting connections when the process has no file descriptor left, in seconds."""
QUIET_SECONDS: Final = 60.0
"""Seconds between two log lines about refused client certificates."""
OTHER_FILES: Final = 128
"""Number of file descriptors of the process beside its connections."""

_OUT_OF_FILES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

_log = logging.getLogger(__name__)

Factory = Callable[[Connection], asyncio.Protocol]


class Listener:
    """Listens on an address, and gives each connection to a protocol of the factory."""

    def __init__(
        self, factory: Factory, *, table: ConnectionTable, tls: ssl.SSLContext | None = None
    ) -> None:
        self._factory = factory
        self._table = table
        self._tls = tls
        self._socket: socket.socket | None = None
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[bool]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._quiet_until = 0.0

    def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return address and port; raise OSError when listening fails."""
        self._socket = _bind(host, port)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)
        address, found, *_ = self._socket.getsockname()
        return address, found

    def close(self) -> None:
        """Accept the connections of the backlog, then stop listening."""
        if self._socket is None:
            return
        self._accept(BACKLOG)
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._socket = None

    def abort_handshakes(self) -> None:
        """Close the connections whose TLS handshake has not ended."""
        for task in self._opening:
            task.cancel()

    def _accept(self, at_most: int = ACCEPT_AT_A_TIME) -> None:
        """Accept the waiting connections, at most `at_most`; pause without a file descriptor."""
        for _ in range(at_most):
            if self._socket is None:
                return
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                _log.error("accepting a connection failed", extra={"reason": error.strerror})
                self._pause()
                return
            self._enter(accepted, address)

    def _pause(self) -> None:
        """Stop accepting for a while: the readable socket would otherwise cause a busy loop."""
        if self._socket is not None and self._paused is None:
            self._loop.remove_reader(self._socket)
            self._paused = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._paused = None
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def _enter(self, accepted: socket.socket, address: object) -> None:
        """Give an accepted connection to the table, close the victim, and begin the protocol."""
        connection = Connection(peer_of(address))
        victim = self._table.enter(connection)
        if victim is connection:
            accepted.close()
            return
        if victim is not None:
            victim.close()
        task = self._loop.create_task(self._begin(connection, accepted))
        connection.close = task.cancel
        self._opening.add(task)

        def done(task: asyncio.Task[bool]) -> None:
            self._opening.discard(task)
            if task.cancelled() or not task.result():
                accepted.close()
                self._table.leave(connection)

        task.add_done_callback(done)

    async def _begin(self, connection: Connection, accepted: socket.socket) -> bool:
        """Do the TLS handshake; return whether the connection has its protocol."""

        def begin() -> asyncio.Protocol:
            return _Tracked(self._factory(connection), connection, self._table)

        try:
            transport, _ = await self._loop.connect_accepted_socket(
                begin,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS if self._tls else None,
            )
        except OSError as error:  # TLS errors and timeouts are OSErrors too
            self._failed(connection.peer, error)
            return False
        connection.close = transport.abort
        return True

    def _failed(self, peer: str, error: OSError) -> None:
        """Log a failed handshake; any client can send a bad certificate: log it once a minute."""
        refused = isinstance(error, ssl.SSLError) and "CERTIFICATE" in (error.reason or "")
        now = self._loop.time()
        loud = refused and now >= self._quiet_until
        if loud:
            self._quiet_until = now + QUIET_SECONDS
        level = logging.WARNING if loud else logging.DEBUG
        message = "client certificate refused" if refused else "TLS handshake failed"
        _log.log(level, message, extra={"peer": peer, "reason": str(error)})


class _Tracked(asyncio.Protocol):
    """Forwards all calls to a protocol, and removes a lost connection from the table."""

    __slots__ = ("_connection", "_inner", "_table", "data_received")

    def __init__(
        self, inner: asyncio.Protocol, connection: Connection, table: ConnectionTable
    ) -> None:
        self._inner = inner
        self._connection = connection
        self._table = table
        self.data_received = inner.data_received  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.leave(self._connection)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def allow_files(wanted: int) -> None:
    """Raise the soft limit of open files up to the hard limit, as Go's runtime does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to a host; an empty host is every address of the machine."""
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)
