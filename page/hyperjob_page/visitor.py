"""A visitor and what admits visitors: identity, visible namespaces and rights."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from aiohttp import web

from hyperjob_core.kube.accessreviews import AccessQuestion, AccessReviews, User
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """One visitor during one request; `kube` acts with the visitor's own rights.

    `user` is the API server's user; None is that of the kubeconfig. `csrf` is the token for forms.
    `can_log_out`: there is a session that `POST /logout` ends.
    """

    csrf: str
    kube: Kube
    reviews: AccessReviews
    read_only: bool
    user: User | None = None
    scope: Scope = EVERYTHING
    can_log_out: bool = False

    @property
    def name(self) -> str:
        """Return the user's name; empty for the kubeconfig's user."""
        return self.user.name if self.user is not None else ""

    async def may(self, verb: str, namespace: str, name: str) -> bool:
        """Return whether the visitor may use `verb` on a HyperJob; False when read-only.

        If the review fails, the kubeconfig's user may try: the API server decides on the request.
        """
        if self.read_only:
            return False
        question = AccessQuestion(self.user, verb, HYPERJOBS, namespace, name)
        try:
            return await self.reviews.allows(question)
        except KubeError:
            return self.user is None


class VisitorAccess:
    """Admits visitors; use with `async with`. `public` are paths that need no visitor."""

    public: frozenset[str] = frozenset()

    def __init__(
        self, kube: Kube, *, read_only: bool, clock: Callable[[], float] | None = None
    ) -> None:
        self._read_only = read_only
        self._reviews = AccessReviews(kube, clock=clock or asyncio.get_running_loop().time)

    async def __aenter__(self) -> Self:
        await self._reviews.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._reviews.__aexit__(None, None, None)

    def listens_on(self, host: str, port: int) -> str:
        """Return the address of the page, which listens there."""
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    async def visitor(self, request: web.Request) -> Visitor:
        """Return the visitor; raises an HTTPException, a refusal or a redirect to the login."""
        raise NotImplementedError

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes of its own pages, such as the login."""
        return ()


VISITOR: Final = web.RequestKey("visitor", Visitor)
