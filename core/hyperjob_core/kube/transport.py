"""The interface of a transport, and the counts of the requests of this process."""

import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hyperjob_core.api.wire import decoded

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
