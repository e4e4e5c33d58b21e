"""Accepts connections within the bounds of a `ConnectionTable`, with or without TLS.

A connection counts from the moment it is accepted, its TLS handshake included. Knows nothing of
what is spoken on a connection.
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

from hyperjob.serving.table import Connection, ConnectionTable, peer_of

BACKLOG: Final = 512
HANDSHAKE_SECONDS: Final = 5.0
SHUTDOWN_SECONDS: Final = 2.0
ACCEPT_AT_A_TIME: Final = 64
"""Connections taken from the backlog before other events of the loop have their turn."""
PAUSE_SECONDS: Final = 1.0
"""How long no connection is accepted when the process has no file descriptor left."""
QUIET_SECONDS: Final = 60.0
"""Between two log lines of refused client certificates."""
OTHER_FILES: Final = 128
"""File descriptors of the process beside its connections."""

_OUT_OF_FILES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

_log = logging.getLogger(__name__)

Factory = Callable[[Connection], asyncio.Protocol]


class Listener:
    """Listens on one address, and hands each connection to the protocol of a factory."""

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
        """Listen, and return address and port; raise OSError when the address cannot be had."""
        self._socket = _bind(host, port)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)
        address, found, *_ = self._socket.getsockname()
        return address, found

    def close(self) -> None:
        """Take up what has connected already, and listen no longer."""
        if self._socket is None:
            return
        self._accept(BACKLOG)
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._socket = None

    def abort_handshakes(self) -> None:
        """Close the connections on which no protocol has begun."""
        for task in self._opening:
            task.cancel()

    def _accept(self, at_most: int = ACCEPT_AT_A_TIME) -> None:
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
                _log.error("no connection can be accepted", extra={"reason": error.strerror})
                self._pause()
                return
            self._enter(accepted, address)

    def _pause(self) -> None:
        """Accept nothing for a while: the socket stays readable, and would be tried without end."""
        if self._socket is not None and self._paused is None:
            self._loop.remove_reader(self._socket)
            self._paused = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._paused = None
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def _enter(self, accepted: socket.socket, address: object) -> None:
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
        """Shake hands, and return whether the protocol has begun."""

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
        except OSError as error:  # TLS errors and the time limit among them
            self._failed(connection.peer, error)
            return False
        connection.close = transport.abort
        return True

    def _failed(self, peer: str, error: OSError) -> None:
        """Log a failed handshake; refused certificates once a minute: any client may send one."""
        refused = isinstance(error, ssl.SSLError) and "CERTIFICATE" in (error.reason or "")
        now = self._loop.time()
        loud = refused and now >= self._quiet_until
        if loud:
            self._quiet_until = now + QUIET_SECONDS
        level = logging.WARNING if loud else logging.DEBUG
        message = "client certificate refused" if refused else "TLS handshake failed"
        _log.log(level, message, extra={"peer": peer, "reason": str(error)})


class _Tracked(asyncio.Protocol):
    """Passes everything on to a protocol, and takes its connection out of the table in the end."""

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
    """Raise the soft limit of open files, as Go's runtime does, as far as the hard one lets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def _bind(host: str, port: int) -> socket.socket:
    """Bind to a host, or to every address of the machine when it is empty."""
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)
