"""Access on the user's own machine, with the rights of the kubeconfig.

As in Jupyter, the printed address has a token, which the browser exchanges at once for a cookie:
the token does not stay in the history or in a Referer. Other users of the machine and pages of
other sites have neither token nor cookie.
"""

import secrets
from ipaddress import ip_address
from typing import Final

from aiohttp import web

from hyperjob_core.kube.accessreviews import bearer
from hyperjob_core.kube.client import Kube
from hyperjob_page.access import checks
from hyperjob_page.access.checks import Csrf, check_form, check_site, refusal, reload, same
from hyperjob_page.visitor import Visitor, VisitorAccess

PARAMETER: Final = "token"
"""The query parameter with the token."""


class LocalAccess(VisitorAccess):
    """Admits visitors with the token.

    Every request is refused before `listens_on` has set the address.
    """

    def __init__(self, kube: Kube, *, token: str = "", read_only: bool = False) -> None:
        super().__init__(kube, read_only=read_only)
        self._kube = kube
        self._token = token or secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._csrf = Csrf()
        self._cookie = ""
        self._hosts: frozenset[str] = frozenset()

    def listens_on(self, host: str, port: int) -> str:
        """Return the address to open, which contains the token and must not be logged."""
        name = f"[{host}]" if ":" in host else host
        known = ("localhost", "127.0.0.1", "[::1]", name)
        self._hosts = frozenset(f"{each}:{port}" for each in known)
        # Browsers send a cookie to every port of a host: the port is part of the cookie's name.
        self._cookie = f"hyperjob-ui-{port}"
        return f"http://{name}:{port}/?{PARAMETER}={self._token}"

    async def visitor(self, request: web.Request) -> Visitor:
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
        return Visitor(
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
