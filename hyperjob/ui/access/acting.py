"""Connections to the API server that carry no credentials of ours, for calls as a visitor."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hyperjob.kube import config
from hyperjob.kube.client import USER_AGENT, Kube
from hyperjob.kube.http import HttpTransport


@asynccontextmanager
async def acting_as(
    *, kubeconfig: str | Path | None = None, context: str | None = None
) -> AsyncIterator[Callable[[str], Kube]]:
    """Yield what makes a client of a bearer token; all share connections, closed at the end.

    Raises ConfigError as `Kube.connect` does.
    """
    connection = await config.load(kubeconfig, context=context, credentials=False)
    async with HttpTransport(connection, user_agent=USER_AGENT) as transport:

        def kube(token: str) -> Kube:
            return Kube(transport.with_bearer(token), namespace=connection.namespace)

        yield kube
