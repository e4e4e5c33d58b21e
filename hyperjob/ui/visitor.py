"""Who looks at the page, and what they may see and do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from aiohttp import web

from hyperjob.kube.client import Kube


@dataclass(frozen=True, slots=True)
class Scope:
    """What a visitor may see; `namespaces` None is all of them. Views are cached by it."""

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
        """Name the visitor as the API server does; empty where the kubeconfig says it."""
        ...

    @property
    def csrf(self) -> str:
        """Return the value that every form sends back."""
        ...

    @property
    def can_log_out(self) -> bool:
        """Return whether there is a session that `POST /logout` ends."""
        ...

    @property
    def scope(self) -> Scope:
        """Return what may be seen."""
        ...

    @property
    def kube(self) -> Kube:
        """Return a client with the visitor's rights."""
        ...

    async def may(self, verb: str, namespace: str, name: str) -> bool:
        """Return whether the visitor may `patch` or `delete` a HyperJob; False when read-only."""
        ...


class Access(Protocol):
    """Lets visitors in."""

    async def visitor(self, request: web.Request) -> Visitor:
        """Find out who asks; an aiohttp HTTPException refuses, or leads to where to log in."""
        ...

    @property
    def public(self) -> frozenset[str]:
        """Name the paths that need no visitor, such as a login; they check what they are sent."""
        ...

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the pages of its own, such as a login."""
        ...


VISITOR: Final = web.RequestKey("visitor", Visitor)
