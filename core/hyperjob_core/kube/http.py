"""Requests and streams over aiohttp: the transport of processes, commands and the SDK.

Retries are bounded: a write is only repeated after a response that it was not processed and when to
retry (429 or 5xx with Retry-After).

The requests go directly to an aiohttp session. The request path of `kubernetes.aio` costs more than
three times the CPU (0.80 ms against 0.22 ms per create, measured side by side: it walks over the
body, encodes with the standard library, looks for a netrc file) and changes the content type of
patches.
"""

import asyncio
import copy
import logging
import os
import random
import socket
import ssl
import time
from bisect import bisect_left
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlencode
from weakref import WeakSet

import aiohttp
from yarl import URL

from hyperjob_core.kube import errors, ratelimit
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.credentials import always, anonymous
from hyperjob_core.kube.transport import (
    CONNECTIONS,
    DURATIONS,
    LONGEST_BODY,
    REQUESTS,
    SECONDS,
    Params,
    Response,
    Warn,
    log_warning,
)

log = logging.getLogger(__name__)


async def read_body(response: aiohttp.ClientResponse, *, most: int = LONGEST_BODY) -> bytes | None:
    """Return the whole body after its decompression; None for one of more than `most` bytes.

    The connection of a longer body is closed, and no more of it is read.
    """
    parts, size = list[bytes](), 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            hang_up(response)
            return None
        parts.append(part)
    return b"".join(parts)


def hang_up(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a response that has not ended.

    A clean close would wait for the server for up to half a minute, maybe beyond the end of the
    event loop.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


_TURNS_TO_CLOSE = 100
_TRIES = 3
_RECONNECT_WAIT = 0.1
_WARNINGS = 256
_CREDENTIALS_SECONDS = 30.0
_CONNECT_SECONDS = 10.0


def why_not_trusted(error: ssl.SSLCertVerificationError, host: str, authorities: str) -> str:
    """Return which certificate is not trusted by which file, and how to correct it."""
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


def why_no_connection(error: OSError) -> str:
    """Return in a few words why there is no connection, without terms of the library."""
    # The error numbers of name resolution and TLS differ from those of the system.
    own = isinstance(error, socket.gaierror | ssl.SSLError)
    if not own and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def why_not_connected(error: Exception) -> str:
    """Return in a few words why there is no connection, without terms of the library."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(
        error, aiohttp.ClientSSLError
    ):
        text = why_no_connection(error.os_error)
        by_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        return f"the proxy {error.host}:{error.port}: {text}" if by_proxy else text
    return str(error) or type(error).__name__


class HttpTransport:
    """Keep-alive HTTP/1.1 over aiohttp, with streams, proxies and any number of connections."""

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str,
        connections: int = CONNECTIONS,
        warn: Warn = log_warning,
    ) -> None:
        self._connection = connection
        self._base = connection.server
        self._host = connection.host
        self._report = warn
        self._warned: set[str] = set()
        self._owns_session = True
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, ssl=connection.tls or True, socket_factory=self._socket
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

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def with_bearer(self, token: str) -> Self:
        """Return a transport over the same connections whose requests have this token instead.

        It is usable until this transport is closed; its own `close` closes no connection.
        """
        authorize = always(f"Bearer {token}")
        other = copy.copy(self)
        other._connection = replace(  # noqa: SLF001 - its own class
            self._connection, authorize=authorize, headers=()
        )
        other._owns_session = False  # noqa: SLF001 - its own class
        return other

    async def close(self) -> None:
        """Close all connections, those of cancelled requests too; return after the last is closed.

        asyncio closes the connection of a cancelled request later, maybe only after the end of the
        event loop.
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

    @property
    def host(self) -> str:
        """Return the server's host and port."""
        return self._host

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
        """Send a request, with retries, within `time_limit` seconds; KubeError unless 2xx."""
        line = f"{method} {path}"
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with asyncio.timeout(time_limit) as limit:
                for attempt in range(1, _TRIES + 1):
                    try:
                        with self._timed(method):
                            return await self._once(method, path, params, body, headers)
                    except errors.KubeError as error:
                        wait = _wait_before_retry(error, method, attempt)
                        if wait is None or _is_too_long(limit, wait):
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
        own: Mapping[str, str],
    ) -> Response:
        """Send the request once; raises KubeError unless 2xx."""
        line = f"{method} {path}"
        headers = await self._headers(own, line)
        try:
            async with self._session.request(
                method, self._url(path, params), data=body, headers=headers, **self._common
            ) as response:
                content = await _body(response, line)
        except (aiohttp.ClientError, OSError) as error:
            self._count("<error>", method)
            raise self._broken(line, error) from error
        return self._answer(
            method,
            path,
            Response(response.status, response.headers, content),
            response.headers.getall("Warning", ()),
        )

    async def stream(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the body of a GET as it arrives, until the server ends the stream.

        Raises KubeError if the server refuses, breaks off, or sends nothing for `idle_limit`
        seconds; the whole stream may take `time_limit` seconds (None: no limit). Calls `opened`
        after the response header.
        """
        line = f"{'WATCH' if 'watch' in params else 'GET'} {path}"
        headers = await self._headers({"Accept": "application/json, */*"}, line)
        timeout = aiohttp.ClientTimeout(
            total=time_limit,
            sock_connect=_CONNECT_SECONDS,
            sock_read=idle_limit,
            ceil_threshold=3600,
        )
        try:
            async with self._session.get(
                self._url(path, params), headers=headers, timeout=timeout, **self._common
            ) as response:
                self._count(str(response.status), "GET")
                if response.status != 200:
                    content = await _body(response, line)
                    raise errors.from_response(response.status, response.headers, content, line)
                if opened:
                    opened()
                try:
                    async for chunk in response.content.iter_any():
                        yield chunk
                finally:
                    hang_up(response)
        except aiohttp.ConnectionTimeoutError as error:
            silence = f"no connection within {_CONNECT_SECONDS:g}s"
            raise errors.unreachable(line, silence, timeout=True) from error
        except aiohttp.SocketTimeoutError as error:
            silence = f"nothing came for {idle_limit:g}s"
            raise errors.unreachable(line, silence, timeout=True) from error
        except TimeoutError as error:
            silence = f"the stream took longer than {time_limit:g}s"
            raise errors.unreachable(line, silence, timeout=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(line, error) from error

    def _url(self, path: str, params: Params | None) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._base}{path}{query}", encoded=True)

    async def _headers(self, own: Mapping[str, str], line: str) -> list[tuple[str, str]]:
        """Return a request's own headers and those of the connection; raises Unavailable."""
        headers = [*own.items(), *self._connection.headers]
        if self._connection.authorize is anonymous:
            return headers
        try:
            async with asyncio.timeout(_CREDENTIALS_SECONDS):
                token = await self._connection.authorize()
        except (errors.ConfigError, TimeoutError) as error:
            raise errors.unreachable(line, f"no credentials: {error}") from error
        return [*headers, ("Authorization", token)] if token else headers

    def _answer(
        self, method: str, path: str, answer: Response, warnings: Sequence[str]
    ) -> Response:
        """Count a response and return it; raises KubeError unless 2xx."""
        line = f"{method} {path}"
        self._count(str(answer.status), method)
        self._warn(line, warnings)
        if not 200 <= answer.status < 300:
            raise errors.from_response(answer.status, answer.headers, answer.body, line)
        return answer

    def _broken(self, line: str, error: Exception) -> errors.Unavailable:
        """Return the error of a request without a response."""
        why, trust = why_not_connected(error), getattr(error, "certificate_error", None)
        if isinstance(trust, ssl.SSLCertVerificationError):
            why = why_not_trusted(trust, self._host, self._connection.authorities)
        return errors.unreachable(line, f"could not talk to {self._base}: {why}")

    def _warn(self, line: str, warnings: Sequence[str]) -> None:
        """Report the warnings of the server, such as about an unknown field, each text once."""
        for warning in warnings:
            if warning not in self._warned and len(self._warned) < _WARNINGS:
                self._warned.add(warning)
                self._report(line, warning)

    @contextmanager
    def _timed(self, method: str) -> Iterator[None]:
        """Count how long a request takes until its answer, or until it ends without one."""
        began = time.perf_counter()
        try:
            yield
        finally:
            took, counts = time.perf_counter() - began, DURATIONS[method, self._host]
            counts[bisect_left(SECONDS, took)] += 1
            counts[-1] += took

    def _count(self, code: str, method: str) -> None:
        REQUESTS[code, method, self._host] += 1


def _wait_before_retry(error: errors.KubeError, method: str, attempt: int) -> float | None:
    """Return the seconds to wait before another try; None for no other try."""
    pause = error.retry_after
    if attempt >= _TRIES:
        return None
    if pause is not None and (error.http_code == 429 or error.http_code >= 500):
        return pause + random.uniform(0, 0.25 + pause / 4)
    if isinstance(error, errors.Unavailable) and not error.answered and method in ("GET", "HEAD"):
        return _RECONNECT_WAIT * attempt * random.uniform(0.5, 1)
    return None


def _is_too_long(limit: asyncio.Timeout, wait: float) -> bool:
    """Return whether the wait would reach the time limit or the longest wait.

    The request then fails at once.
    """
    deadline = limit.when() or 0.0
    return wait >= min(deadline - asyncio.get_running_loop().time(), ratelimit.LONGEST)


async def _body(response: aiohttp.ClientResponse, line: str) -> bytes:
    """Return the body of a response; raises TooLarge."""
    content = await read_body(response)
    if content is None:
        raise errors.too_large(line, f"the answer has more than {LONGEST_BODY} bytes")
    return content
