"""Access on the user's own machine, with the rights of the kubeconfig.

As in Jupyter, the printed address has a token, which the browser exchanges at once for a cookie:
the token does not stay in the history or in a Referer. Other users of the machine and pages of
other sites have neither token nor cookie.
"""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Self

from aiohttp import web

from hyperjob_core.kube.accessreviews import AccessQuestion, AccessReviews, bearer
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_page.access import checks
from hyperjob_page.access.answers import refusal, reload
from hyperjob_page.access.csrf import Csrf, same
from hyperjob_page.access.forms import check_form, check_site
from hyperjob_page.visitor import EVERYTHING, Scope

PARAMETER: Final = "token"
"""The query parameter with the token."""


@dataclass(frozen=True, slots=True)
class LocalVisitor:
    """The user of the kubeconfig."""

    csrf: str
    kube: Kube
    reviews: AccessReviews
    read_only: bool
    name: str = ""
    can_log_out: bool = False
    scope: Scope = EVERYTHING

    async def may(self, verb: str, namespace: str, name: str) -> bool:
        """Return whether the kubeconfig's user may use `verb` on a HyperJob.

        True if the review fails: the API server still decides on the request itself.
        """
        if self.read_only:
            return False
        try:
            return await self.reviews.allows(AccessQuestion(None, verb, HYPERJOBS, namespace, name))
        except KubeError:
            return True


class LocalAccess:
    """Admits visitors with the token; use with `async with`.

    Every request is refused before `listens_on` has set the address.
    """

    def __init__(self, kube: Kube, *, token: str = "", read_only: bool = False) -> None:
        self._kube = kube
        self._token = token or secrets.token_urlsafe(32)
        self._read_only = read_only
        self._session = secrets.token_urlsafe(32)
        self._csrf = Csrf()
        self._reviews = AccessReviews(kube, clock=asyncio.get_running_loop().time)
        self._cookie = ""
        self._hosts: frozenset[str] = frozenset()

    async def __aenter__(self) -> Self:
        await self._reviews.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._reviews.__aexit__(None, None, None)

    def listens_on(self, host: str, port: int) -> str:
        """Return the address to open, which contains the token and must not be logged."""
        name = f"[{host}]" if ":" in host else host
        known = ("localhost", "127.0.0.1", "[::1]", name)
        self._hosts = frozenset(f"{each}:{port}" for each in known)
        # Browsers send a cookie to every port of a host: the port is part of the cookie's name.
        self._cookie = f"hyperjob-ui-{port}"
        return f"http://{name}:{port}/?{PARAMETER}={self._token}"

    @property
    def public(self) -> frozenset[str]:
        """Name the paths that are for those without a session too."""
        return frozenset()

    def routes(self) -> Sequence[web.RouteDef]:
        """Return no routes: there is no login."""
        return ()

    async def visitor(self, request: web.Request) -> LocalVisitor:
        """Return the visitor of a request with the cookie or the token; check forms."""
        check_site(request, self._hosts)
        if given := request.query.get(PARAMETER):
            self._exchange(request, given)
        if not self._is_known(request):
            if checks.came_by_a_link(request.headers) and self._cookie not in request.cookies:
                raise reload(request)
            why = "Open the address that hyperjob ui printed: it contains the token for this page."
            raise refusal(403, why)
        await check_form(request, self._csrf, self._session, read_only=self._read_only)
        return LocalVisitor(
            csrf=self._csrf.token(self._session),
            kube=self._kube,
            reviews=self._reviews,
            read_only=self._read_only,
        )

    def _is_known(self, request: web.Request) -> bool:
        if same(self._session, request.cookies.get(self._cookie, "")):
            return True
        return same(self._token, bearer(request.headers))

    def _exchange(self, request: web.Request, given: str) -> None:
        """Exchange the token in the address for a cookie, and redirect to the plain address."""
        if request.method not in checks.SAFE_METHODS or not same(self._token, given):
            raise refusal(403, "the token in the address is not the token of this process")
        rest = request.rel_url.without_query_params(PARAMETER)
        answer = web.HTTPSeeOther(checks.local_path(str(rest)))
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        raise answer


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listen address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
