"""What a client needs of the network: one exchange, and a stream of lines. Does neither itself."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

Params = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Response:
    """The server's response with its whole body: `json()` decodes it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - the wire edge
        """Decode the body."""
        return orjson.loads(self.body)


class Transport(Protocol):
    """What `Kube` needs of the network."""

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
        """Make one call; raises KubeError for everything but 2xx."""
        ...

    def lines(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
        empty: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Stream the lines of a GET; raises KubeError, also when it falls silent."""
        ...

    async def close(self) -> None:
        """Return the connections back."""
        ...
