"""Access to the web page without any check, for tests of its content."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from hyperjob_core.kube.client import Kube
from hyperjob_page.visitor import EVERYTHING, Scope


@dataclass(frozen=True, slots=True)
class OpenVisitor:
    """Any caller, with the rights of the kubeconfig."""

    kube: Kube
    read_only: bool = False
    name: str = ""
    csrf: str = ""
    can_log_out: bool = False
    scope: Scope = EVERYTHING

    async def may(self, verb: str, namespace: str, name: str) -> bool:
        """Return True, unless the page is read-only."""
        return not self.read_only


class OpenAccess:
    """Admits every request."""

    def __init__(self, kube: Kube, *, read_only: bool = False) -> None:
        self._visitor = OpenVisitor(kube, read_only)

    async def visitor(self, request: web.Request) -> OpenVisitor:
        """Return the only visitor."""
        return self._visitor

    @property
    def public(self) -> frozenset[str]:
        """Return no paths: all paths are open."""
        return frozenset()

    def routes(self) -> Sequence[web.RouteDef]:
        """Return no routes."""
        return ()
