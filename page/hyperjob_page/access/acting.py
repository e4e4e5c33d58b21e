"""Connections to the API server without the process's own credentials, for visitors' requests."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hyperjob_core.kube import config
from hyperjob_core.kube.client import USER_AGENT, Kube
from hyperjob_core.kube.http import HttpTransport


@asynccontextmanager
async def acting_as(
    *, kubeconfig: str | Path | None = None, context: str | None = None
) -> AsyncIterator[Callable[[str], Kube]]:
    """Yield a function that returns a client for a bearer token; all clients share connections.

    The end of the block closes the connections. Raises ConfigError as `Kube.connect` does.
    """
    connection = await config.load(kubeconfig, context=context, credentials=False)
    async with HttpTransport(connection, user_agent=USER_AGENT) as transport:

        def kube(token: str) -> Kube:
            return Kube(transport.with_bearer(token), namespace=connection.namespace)

        yield kube
