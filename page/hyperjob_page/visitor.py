"""The interface of a visitor: identity, visible namespaces and rights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from aiohttp import web

from hyperjob_core.kube.client import Kube


@dataclass(frozen=True, slots=True)
class Scope:
    """The objects that a visitor may see; `namespaces` None is all. Cached views use it as key."""

    namespaces: frozenset[str] | None = None
    clusters: bool = True
    queues: bool = True

    def includes(self, namespace: str) -> bool:
        """Return whether the HyperJobs of a namespace are visible."""
        return self.namespaces is None or namespace in self.namespaces


EVERYTHING: Final = Scope()


class Visitor(Protocol):
    """One visitor during one request; `kube` acts with the visitor's own rights."""

    @property
    def name(self) -> str:
        """Return the API server's name of the visitor; empty for the kubeconfig's user."""
        ...

    @property
    def csrf(self) -> str:
        """Return the CSRF token for forms."""
        ...

    @property
    def can_log_out(self) -> bool:
        """Return whether there is a session that `POST /logout` ends."""
        ...

    @property
    def scope(self) -> Scope:
        """Return the scope of the visitor."""
        ...

    @property
    def kube(self) -> Kube:
        """Return a client with the visitor's rights."""
        ...

    async def may(self, verb: str, namespace: str, name: str) -> bool:
        """Return whether the visitor may `patch` or `delete` a HyperJob; False when read-only."""
        ...


class VisitorAccess(Protocol):
    """Admits visitors."""

    async def visitor(self, request: web.Request) -> Visitor:
        """Return the visitor; raises an HTTPException, a refusal or a redirect to the login."""
        ...

    @property
    def public(self) -> frozenset[str]:
        """Return the paths that need no visitor, such as the login; they check requests."""
        ...

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes of its own pages, such as the login."""
        ...


VISITOR: Final = web.RequestKey("visitor", Visitor)
