"""The API server of a member cluster, through Karmada's cluster proxy."""

from collections.abc import AsyncGenerator, Callable

from hyperjob_core.kube.resources import CLUSTERS
from hyperjob_core.kube.transport import Params, Response, Transport


def proxied(cluster: str, path: str) -> str:
    """Return the path of Karmada's cluster proxy for a path in a member's API server."""
    return f"{CLUSTERS.path(None, cluster, 'proxy')}{path}"


class Proxied:
    """A transport to a member over a transport to the Karmada API server, which stays open."""

    def __init__(self, transport: Transport, cluster: str) -> None:
        self._transport = transport
        self._cluster = cluster

    @property
    def host(self) -> str:
        """Return the host and port of the Karmada API server."""
        return self._transport.host

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
        """Send a request to the member; raises KubeError unless 2xx."""
        return await self._transport.request(
            method,
            proxied(self._cluster, path),
            params=params,
            body=body,
            content_type=content_type,
            accept=accept,
            time_limit=time_limit,
        )

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
        return self._transport.stream(
            proxied(self._cluster, path),
            params=params,
            idle_limit=idle_limit,
            time_limit=time_limit,
            opened=opened,
        )

    async def close(self) -> None:
        """Leave the connections open: they belong to the transport below."""
