"""The interface of a transport, and the common part of all requests to the API server.

That is credentials, time limits and bounded retries: a write is only repeated after a response that
it was not processed and when to retry (429 or 5xx with Retry-After).
"""

import asyncio
import logging
import os
import random
import socket
import ssl
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from hyperjob_core.api.wire import decoded
from hyperjob_core.kube import errors, ratelimit
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.credentials import anonymous

Params = Mapping[str, str]

CONNECTIONS: Final = 256
"""The concurrent connections of one client."""
LONGEST_BODY: Final = 8 * 1024 * 1024
"""The longest body of a response in bytes, and the longest line of a watch.

An API server takes no object above 3 MiB, and no request for a list needs more: `Kube.list` asks
for shorter pages. Decoded JSON takes up to twenty times as much memory.
"""


@dataclass(frozen=True, slots=True)
class Response:
    """The server's response with its whole body: `json()` decodes it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - the wire edge
        """Decode the body; raises ValueError."""
        return decoded(self.body)


class Transport(Protocol):
    """The transport of `Kube`."""

    @property
    def host(self) -> str:
        """Return the server's host and port."""
        ...

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
        """Send a request; raises KubeError unless 2xx."""
        ...

    def stream(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the body of a GET as it arrives; raises KubeError, also for a silent stream."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


log = logging.getLogger(__name__)

_TRIES = 3
_RECONNECT_WAIT = 0.1
_WARNINGS = 256
_CREDENTIALS_SECONDS = 30.0

REQUESTS: Final[Counter[tuple[str, str, str]]] = Counter()
"""The requests of this process by code (`<error>` without an answer), method and host."""
SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
DURATIONS: Final[defaultdict[tuple[str, str], list[float]]] = defaultdict(
    lambda: [0.0] * (len(SECONDS) + 2)
)
"""By method and host, how many requests took at most each of SECONDS, or longer; then their sum."""


Warn = Callable[[str, str], None]
"""Reports a warning of the API server: the request and the text."""


def log_warning(request: str, text: str) -> None:
    """Log a warning of the API server."""
    log.warning("The API server warns", extra={"request": request, "warning": text})


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


class Exchange(ABC):
    """The base of HttpTransport, without its connections: tests replace these by a script."""

    def __init__(self, connection: Connection, *, warn: Warn = log_warning) -> None:
        self._connection = connection
        self._base = connection.server
        self._host = connection.host
        self._report = warn
        self._warned: set[str] = set()

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

    @abstractmethod
    async def _once(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | None,
        headers: dict[str, str],
    ) -> Response:
        """Send the request once; raises KubeError unless 2xx."""

    async def _authorize(self, headers: dict[str, str], line: str) -> None:
        """Add the Authorization header, if the connection has one; raises Unavailable."""
        if self._connection.authorize is anonymous:
            return
        try:
            async with asyncio.timeout(_CREDENTIALS_SECONDS):
                token = await self._connection.authorize()
        except (errors.ConfigError, TimeoutError) as error:
            raise errors.unreachable(line, f"no credentials: {error}") from error
        if token:
            headers["Authorization"] = token

    def _target(self, path: str, params: Params | None) -> str:
        return f"{path}?{urlencode(params)}" if params else path

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

    def _unreachable(self, line: str, why: str, *, cause: object = None) -> errors.Unavailable:
        """Return the error of a request without a response; `cause` may be an error of TLS."""
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = why_not_trusted(cause, self._host, self._connection.authorities)
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
