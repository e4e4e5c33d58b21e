"""One HTTP exchange with the API server: connections, credentials, time limits, bounded retries.

`kubernetes.aio` gives the configuration, the TLS context and the credentials; the requests go
straight to an aiohttp session. Its own request path costs more than three times the CPU (0.80 ms
against 0.22 ms a create, measured side by side: it walks over the body, encodes with the standard
library, looks for a netrc file) and relabels patches, so it is not on this way.

Nothing here knows a resource, and a write is never repeated unless the server itself said that it
did nothing and when to come back (429 or 5xx with Retry-After).
"""

import asyncio
import copy
import logging
import os
import random
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode
from weakref import WeakSet

import aiohttp
from yarl import URL

from hyperjob.kube import errors
from hyperjob.kube.config import Connection
from hyperjob.kube.instruments import SILENT, ClientMetrics
from hyperjob.kube.transport import Params, Response

log = logging.getLogger(__name__)

_CONNECTIONS = 256
_TRIES = 3
_LONGEST_WAIT = 30.0
_LONGEST_LINE = 32 * 1024 * 1024
_RECONNECT_WAIT = 0.1
_WARNINGS = 256
_CREDENTIALS_SECONDS = 30.0
_TURNS_TO_CLOSE = 100


def why_not_trusted(error: ssl.SSLCertVerificationError, host: str, authorities: str) -> str:
    """Say which certificate is not trusted by which file, and how to correct it."""
    match error.verify_code:
        case 10:
            return f"the certificate of {host} has expired: renew it on the API server"
        case 9:
            return f"the certificate of {host} is not valid yet: compare the clocks"
        case 62 | 64:
            return (
                f"the certificate of {host}: {error.verify_message.rstrip('.')}: use a name that is"
                " in it as server, or as tls-server-name in the kubeconfig"
            )
        case _:
            return (
                f"the certificate of {host} is not signed by {authorities}"
                f" ({error.verify_message}): put the API server's authority there"
            )


def why_not_connected(error: Exception) -> str:
    """Say in a few words why there is no connection, without the library's own terms."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(
        error, aiohttp.ClientSSLError
    ):
        number = error.os_error.errno
        # Names that cannot be resolved have negative numbers and their own words.
        if number is not None and number > 0:
            return os.strerror(number)
        return error.os_error.strerror or str(error)
    return str(error) or type(error).__name__


class HttpTransport:
    """The transport of every real process: keep-alive HTTP/1.1 over aiohttp."""

    def __init__(
        self, connection: Connection, *, user_agent: str, metrics: ClientMetrics = SILENT
    ) -> None:
        self._connection = connection
        self._metrics = metrics
        self._base = connection.server
        self._warned: set[str] = set()
        self._owns_session = True
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=_CONNECTIONS, ssl=connection.tls or True, socket_factory=self._socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": user_agent},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
            read_bufsize=2**18,
        )
        self._common: dict[str, Any] = {"allow_redirects": False}
        if connection.proxy:
            self._common["proxy"] = connection.proxy
        if connection.server_hostname:
            self._common["server_hostname"] = connection.server_hostname

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def host(self) -> str:
        """Give the server's host and port."""
        return self._connection.host

    def with_bearer(self, token: str) -> Self:
        """Give a transport over the same connections whose calls carry this token instead.

        It is good until this one is closed, and closing it closes nothing.
        """

        async def authorize() -> str:
            return f"Bearer {token}"

        other = copy.copy(self)
        other._connection = replace(self._connection, authorize=authorize)  # noqa: SLF001 - its own
        other._owns_session = False  # noqa: SLF001 - its own class
        return other

    async def close(self) -> None:
        """Close all connections, those of cancelled calls too; returns when none is open.

        A call that is cancelled during its TLS handshake or while it waits leaves a connection
        that asyncio closes in its own time, which the end of the event loop would cut short.
        """
        if not self._owns_session:
            return
        await self._session.close()
        for one in self._open():
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_TURNS_TO_CLOSE):
            if not self._open():
                return
            await asyncio.sleep(0)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made

    def _open(self) -> list[socket.socket]:
        return [one for one in self._sockets if one.fileno() != -1]

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        time_limit: float = 30.0,
    ) -> Response:
        """Make one call within `time_limit` seconds, waits included; KubeError unless 2xx."""
        line = f"{method} {path}"
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with asyncio.timeout(time_limit) as limit:
                for attempt in range(1, _TRIES + 1):
                    try:
                        return await self._once(method, path, params, body, headers)
                    except errors.KubeError as error:
                        wait = _wait_before_retry(error, method, attempt)
                        if wait is None or _passes(limit, wait):
                            raise
                        log.debug("Calling again", extra={"request": line, "seconds": wait})
                        await asyncio.sleep(wait)
        except TimeoutError as error:
            self._count("<error>", method)
            raise errors.unreachable(
                line, f"no answer within {time_limit:g}s", timeout=True
            ) from error
        raise AssertionError("the last attempt returns or raises")

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
        try:
            async with self._session.request(
                method, self._url(path, params), data=body, headers=headers, **self._common
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            self._count("<error>", method)
            raise self._unreachable(line, error) from error
        self._count(str(response.status), method)
        if "Warning" in response.headers:
            self._warn(line, response.headers.getall("Warning"))
        if not 200 <= response.status < 300:
            raise errors.from_response(response.status, response.headers, content, line)
        return Response(response.status, response.headers, content)

    async def lines(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
        empty: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Stream the lines of a GET, each without its newline, until the server ends it.

        Raises KubeError when the server refuses, breaks off, or sends nothing for `idle_limit`
        seconds; the whole stream may take `time_limit` seconds (None: for ever). Calls `opened`
        once it flows. Lines without text are left out unless `empty`.
        """
        line = f"{'GET' if empty else 'WATCH'} {path}"
        headers = {"Accept": "application/json, */*" if empty else "application/json"}
        await self._authorize(headers, line)
        timeout = aiohttp.ClientTimeout(
            total=time_limit, sock_connect=10.0, sock_read=idle_limit, ceil_threshold=3600
        )
        try:
            async with self._session.get(
                self._url(path, params), headers=headers, timeout=timeout, **self._common
            ) as response:
                self._count(str(response.status), "GET")
                if response.status != 200:
                    content = await response.read()
                    raise errors.from_response(response.status, response.headers, content, line)
                if opened:
                    opened()
                try:
                    async with aclosing(_split(response.content, empty=empty)) as split:
                        async for one in split:
                            yield one
                finally:
                    _hang_up(response)
        except (aiohttp.ServerTimeoutError, TimeoutError) as error:
            silence = "nothing came" if idle_limit is None else f"nothing came for {idle_limit:g}s"
            raise errors.unreachable(line, silence, timeout=True) from error
        except (aiohttp.ClientError, OSError, _LineTooLongError) as error:
            raise self._unreachable(line, error) from error

    async def _authorize(self, headers: dict[str, str], line: str) -> None:
        try:
            async with asyncio.timeout(_CREDENTIALS_SECONDS):
                token = await self._connection.authorize()
        except (errors.ConfigError, TimeoutError) as error:
            raise errors.unreachable(line, f"no credentials: {error}") from error
        if token:
            headers["Authorization"] = token

    def _url(self, path: str, params: Params | None) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._base}{path}{query}", encoded=True)

    def _unreachable(self, line: str, error: Exception) -> errors.Unavailable:
        cause = getattr(error, "certificate_error", None)
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = why_not_trusted(cause, self._connection.host, self._connection.authorities)
        else:
            why = why_not_connected(error)
        return errors.unreachable(line, f"could not talk to {self._base}: {why}")

    def _warn(self, line: str, warnings: list[str]) -> None:
        """Log what the server warns of, an unknown field for one, once for each text."""
        for warning in warnings:
            if warning not in self._warned and len(self._warned) < _WARNINGS:
                self._warned.add(warning)
                log.warning("The API server warns", extra={"request": line, "warning": warning})

    def _count(self, code: str, method: str) -> None:
        self._metrics.request_done(code=code, method=method, host=self._connection.host)


class _LineTooLongError(Exception):
    """A stream sent a line that no API server would send."""


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Cut the connection of a stream that is left early; an ended stream has none.

    Closing it politely would wait for the server for up to half a minute, beyond the end of the
    process's event loop.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def _split(content: aiohttp.StreamReader, *, empty: bool) -> AsyncGenerator[bytes, None]:
    """Cut a stream into lines; aiohttp's own readline would refuse a large object."""
    parts: list[bytes] = []
    held = 0
    async for chunk in content.iter_any():
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            parts.append(end)
            line = b"".join(parts)
            if line or empty:
                yield line
            parts.clear()
            held = 0
        if rest:
            parts.append(rest)
            held += len(rest)
            if held > _LONGEST_LINE:
                raise _LineTooLongError(f"a line is longer than {_LONGEST_LINE} bytes")
    if line := b"".join(parts):
        yield line


def _wait_before_retry(error: errors.KubeError, method: str, attempt: int) -> float | None:
    """Say for how many seconds to wait before another try, None for no other try."""
    pause = error.retry_after
    if attempt >= _TRIES:
        return None
    if pause is not None and (error.http_code == 429 or error.http_code >= 500):
        return pause + random.uniform(0, 0.25 + pause / 4)
    if isinstance(error, errors.Unavailable) and not error.answered and method in ("GET", "HEAD"):
        return _RECONNECT_WAIT * attempt * random.uniform(0.5, 1)
    return None


def _passes(limit: asyncio.Timeout, wait: float) -> bool:
    """Tell whether waiting would pass the time limit: then the caller hears at once."""
    deadline = limit.when() or 0.0
    return wait >= min(deadline - asyncio.get_running_loop().time(), _LONGEST_WAIT)
