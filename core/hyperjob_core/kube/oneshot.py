"""The transport of short-lived commands, over the standard library's HTTP client.

The import of aiohttp costs more CPU than the rest of such a command. Streams use HttpTransport,
which is created with the first stream.
"""

import asyncio
import contextlib
import http.client
import select
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.exchange import Exchange, why_no_connection
from hyperjob_core.kube.instruments import SILENT, ClientMetrics
from hyperjob_core.kube.transport import Params, Response

if TYPE_CHECKING:
    from hyperjob_core.kube.http import HttpTransport

_CONNECTIONS = 8
_CONNECT_SECONDS = 10.0


class OneShotTransport(Exchange):
    """Requests in up to eight threads, each with a keep-alive connection of its own.

    `connection` must have no proxy, which only HttpTransport supports.
    """

    def __init__(
        self, connection: Connection, *, user_agent: str, metrics: ClientMetrics = SILENT
    ) -> None:
        super().__init__(connection, metrics=metrics)
        self._user_agent = user_agent
        self._threads = ThreadPoolExecutor(_CONNECTIONS)
        self._channels: set[_Channel] = set()
        self._idle: list[_Channel] = []
        self._streams: HttpTransport | None = None

    async def close(self) -> None:
        """Close all connections and end all threads, those of cancelled requests too."""
        for channel in self._channels:
            channel.cut()
        self._threads.shutdown(cancel_futures=True)
        for channel in self._channels:
            channel.close()
        if self._streams is not None:
            await self._streams.close()

    async def _once(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | None,
        headers: dict[str, str],
    ) -> Response:
        line = f"{method} {path}"
        await self._authorize(headers, line)
        channel = self._idle.pop() if self._idle else _Channel(self._connection)
        self._channels.add(channel)
        sent = {"User-Agent": self._user_agent, **headers}
        target = urlsplit(self._base).path + self._target(path, params)
        try:
            answer, warnings = await asyncio.get_running_loop().run_in_executor(
                self._threads, channel.exchange, method, target, body, sent
            )
        except (http.client.HTTPException, OSError) as error:
            self._count("<error>", method)
            why = why_no_connection(error) if isinstance(error, OSError) else str(error)
            raise self._unreachable(line, why or type(error).__name__, cause=error) from error
        except asyncio.CancelledError:
            channel.cut()
            raise
        self._idle.append(channel)
        return self._answer(method, path, answer, warnings)

    async def stream(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the body of a GET as it arrives, as HttpTransport does."""
        if self._streams is None:
            from hyperjob_core.kube.http import HttpTransport

            self._streams = HttpTransport(
                self._connection, user_agent=self._user_agent, metrics=self._metrics
            )
        stream = self._streams.stream(
            path, params=params, idle_limit=idle_limit, time_limit=time_limit, opened=opened
        )
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                yield chunk


class _Channel(http.client.HTTPConnection):
    """A connection for one request at a time, which another thread may abort at any moment."""

    def __init__(self, connection: Connection) -> None:
        parts = urlsplit(connection.server)
        super().__init__(parts.hostname or "", parts.port or (443 if connection.tls else 80))
        self._tls = connection.tls
        self._name = connection.server_hostname or parts.hostname
        self._lock = threading.Lock()
        self._is_cut = False
        self._held: socket.socket | None = None

    def exchange(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[Response, list[str]]:
        """Send a request; return the response and its warnings. An error closes the connection."""
        try:
            if self._held is not None and self._is_stale(self._held):
                self.close()
            self.request(method, target, body=body, headers=headers)
            answer = self.getresponse()
            content = answer.read()
        except BaseException:
            self.close()
            raise
        if answer.will_close:
            self.close()
        found = cast("Mapping[str, str]", answer.headers)
        warnings = answer.headers.get_all("Warning", [])
        return Response(answer.status, found, content), warnings

    def connect(self) -> None:
        """Open the connection to the first address that answers."""
        opened = self._first_that_answers()
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            secured = self._tls.wrap_socket(
                opened, server_hostname=self._name, do_handshake_on_connect=False
            )
            opened = self._hold(secured)
            secured.do_handshake()
        opened.settimeout(None)  # the caller's time limit aborts it
        self.sock = opened

    def _first_that_answers(self) -> socket.socket:
        failed = OSError("it has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            opened = self._hold(socket.socket(family, kind, protocol))
            opened.settimeout(_CONNECT_SECONDS)
            try:
                opened.connect(address)
            except OSError as error:
                opened.close()
                failed = error
            else:
                return opened
        raise failed

    def cut(self) -> None:
        """Abort the present request, from any thread; no other one may follow."""
        with self._lock:
            self._is_cut = True
            if self._held is not None:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._held, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        with self._lock:  # the number of a closed descriptor may be reused at once
            super().close()
            if self._held is not None:
                self._held.close()
                self._held = None

    def _hold(self, opened: socket.socket) -> socket.socket:
        with self._lock:
            if self._is_cut:
                opened.close()
                raise ConnectionAbortedError(103, "the call was cancelled")
            self._held = opened
        return opened

    def _is_stale(self, held: socket.socket) -> bool:
        """Return whether the server has closed it: no other data arrives between two requests."""
        pending = held.pending() if isinstance(held, ssl.SSLSocket) else 0
        return bool(pending or select.select([held], [], [], 0)[0])
