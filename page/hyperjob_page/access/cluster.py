"""Access in a cluster: every visitor has a bearer token of the Karmada API server.

An authenticating proxy sends the token with each request (Authorization header), or the visitor
enters it once at the login and gets a cookie, in which only this page can read it. The API server
identifies the user (TokenReview) and decides what the user may list (SubjectAccessReview). All
requests beyond the lists use the visitor's own token: the account of this process needs no rights
for them.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
import zlib
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

from aiohttp import web
from cryptography.fernet import Fernet, InvalidToken

from hyperjob_core.kube import config
from hyperjob_core.kube.accessreviews import AccessQuestion, User, bearer
from hyperjob_core.kube.client import USER_AGENT, Kube
from hyperjob_core.kube.errors import KubeError, Unauthorized
from hyperjob_core.kube.http import HttpTransport
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, QUEUES, Resource
from hyperjob_page.access import checks
from hyperjob_page.access.checks import (
    FIELD,
    Csrf,
    check_form,
    check_site,
    form_fields,
    local_path,
    login_first,
    refusal,
    reload,
)
from hyperjob_page.measures import LOGINS
from hyperjob_page.render import render
from hyperjob_page.visitor import Scope, Visitor, VisitorAccess

KEY_BYTES: Final = 32
"""Least size of a key."""
SESSION_SECONDS: Final = 8 * 3600
LONGEST_COOKIE: Final = 3800
"""Browsers keep cookies of up to 4,096 bytes, their name and attributes included."""


class Sessions:
    """Makes and opens the values of session cookies; `now` is in seconds since 1970."""

    def __init__(self, key: bytes, *, now: Callable[[], float] = time.time) -> None:
        self._cipher = Fernet(urlsafe_b64encode(derived(key, "session")))
        self._now = now

    def begin(self, token: str) -> str:
        """Return the value of the cookie for a token; raise ValueError for a token too long."""
        packed = zlib.compress(token.encode())
        cookie = self._cipher.encrypt_at_time(packed, int(self._now())).decode()
        if len(cookie) > LONGEST_COOKIE:
            raise ValueError("a cookie cannot hold this token")
        return cookie

    def token(self, cookie: str) -> str | None:
        """Return the token of a cookie; None for a cookie that has ended or has another key."""
        try:
            raw, now = cookie.encode(), int(self._now())
            return zlib.decompress(self._cipher.decrypt_at_time(raw, SESSION_SECONDS, now)).decode()
        except (ValueError, InvalidToken):
            return None


def derived(key: bytes, purpose: str) -> bytes:
    """Return the key of one purpose."""
    return hmac.digest(key, purpose.encode(), "sha256")


SESSION_COOKIE: Final = "__Host-hyperjob-ui"
FORM_COOKIE: Final = "__Host-hyperjob-ui-login"
"""Cookie of a browser without a session, for the CSRF token of the login form."""
_FORM_SECONDS: Final = 3600

_log = logging.getLogger(__name__)


class Login:
    """Shows the form and accepts a token; `enter` returns the session's cookie, or None."""

    path: Final = "/login"

    def __init__(
        self,
        enter: Callable[[str], Awaitable[str | None]],
        *,
        csrf: Csrf,
        hosts: Collection[str],
    ) -> None:
        self._enter = enter
        self._csrf = csrf
        self._hosts = hosts

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes of the form."""
        return (web.get(self.path, self._show), web.post(self.path, self._take))

    async def _show(self, request: web.Request) -> web.Response:
        check_site(request, self._hosts)
        return self._form(request, local_path(request.query.get("next", "/")))

    async def _take(self, request: web.Request) -> web.Response:
        """Exchange the token of the form for a cookie and redirect, or show the form again."""
        check_site(request, self._hosts)
        form = await form_fields(request)
        browser = request.cookies.get(FORM_COOKIE, "")
        following = local_path(form.get("next", "/"))
        if not browser or not self._csrf.accepts(browser, form.get(FIELD, "")):
            why = "The form has expired, or the browser refuses cookies. Try again."
            return self._form(request, following, why=why, status=403)
        try:
            session = await self._enter(form.get("token", "").strip())
        except KubeError as error:
            raise refusal(503, f"the API server does not answer: {error.message}") from error
        LOGINS.labels("refused" if session is None else "accepted").inc()
        if session is None:
            _log.info("login refused", extra={"peer": request.remote})
            why = "The Karmada API server does not accept this token."
            return self._form(request, following, why=why, status=403)
        answer = web.HTTPSeeOther(following)
        _set(answer, SESSION_COOKIE, session)
        answer.del_cookie(FORM_COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
        raise answer

    def _form(
        self, request: web.Request, following: str, *, why: str = "", status: int = 200
    ) -> web.Response:
        browser = request.cookies.get(FORM_COOKIE, "") or secrets.token_urlsafe(32)
        text = render(
            "login.html",
            action=self.path,
            csrf=self._csrf.token(browser),
            following=following,
            why=why,
        )
        answer = web.Response(text=text, content_type="text/html", status=status)
        _set(answer, FORM_COOKIE, browser, max_age=_FORM_SECONDS)
        return answer


def _set(answer: web.StreamResponse, name: str, value: str, *, max_age: int | None = None) -> None:
    answer.set_cookie(
        name, value, max_age=max_age, path="/", secure=True, httponly=True, samesite="Strict"
    )


LONGEST_TOKEN: Final = 16 * 1024


class ClusterAccess(VisitorAccess):
    """Admits visitors whose token the API server accepts.

    `kube` has the process's own account, for reviews only; `acting` returns a client for a bearer
    token; `key` seals the sessions, which processes with the same key share; `hosts` are the host
    names of the page (see `checks.refused`); `namespaces` returns the namespaces with HyperJobs.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        acting: Callable[[str], Kube],
        key: bytes,
        hosts: Collection[str],
        namespaces: Callable[[], Collection[str]],
        read_only: bool = False,
        clock: Callable[[], float] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(kube, read_only=read_only, clock=clock)
        self._acting = acting
        self._hosts = frozenset(host.lower() for host in hosts)
        self._namespaces = namespaces
        self._sessions = Sessions(key, now=now)
        self._csrf = Csrf(derived(key, "csrf"))
        self._login = Login(self._enter, csrf=self._csrf, hosts=self._hosts)
        self.public = frozenset({self._login.path})

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes of login and logout."""
        return (*self._login.routes(), web.post("/logout", self._leave))

    async def visitor(self, request: web.Request) -> Visitor:
        """Return the visitor of a request, with the namespaces that the visitor may see."""
        check_site(request, self._hosts)
        token, session = self._credentials(request)
        if not token:
            raise self._stranger(request)
        try:
            user = await self._user(token)
            if user is None:
                raise self._stranger(request)
            await check_form(request, self._csrf, session, read_only=self._is_closed(request))
            scope = await self._scope(user)
        except KubeError as error:
            why = f"the API server did not answer whether you may list HyperJobs: {error.message}"
            raise refusal(503, why) from error
        return Visitor(
            user=user,
            csrf=self._csrf.token(session),
            kube=self._acting(token),
            reviews=self._reviews,
            scope=scope,
            read_only=self._read_only,
            can_log_out=session == request.cookies.get(SESSION_COOKIE),
        )

    def _credentials(self, request: web.Request) -> tuple[str, str]:
        """Return the token, and the session for the CSRF tokens of forms."""
        if token := bearer(request.headers):
            if len(token) > LONGEST_TOKEN:
                raise refusal(401, "the bearer token is too long")
            return token, hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
        cookie = request.cookies.get(SESSION_COOKIE, "")
        return self._sessions.token(cookie) or "", cookie

    def _is_closed(self, request: web.Request) -> bool:
        return self._read_only and request.path != "/logout"

    def _stranger(self, request: web.Request) -> web.HTTPException:
        if checks.came_by_a_link(request.headers) and SESSION_COOKIE not in request.cookies:
            return reload(request)
        if "Authorization" in request.headers:
            return refusal(401, "the API server does not accept the bearer token")
        return login_first(request, self._login.path)

    async def _user(self, token: str) -> User | None:
        try:
            return await self._reviews.user(token)
        except Unauthorized as error:
            # The API server refuses the process's own account: the visitor cannot correct that.
            raise KubeError({**error.status, "code": 503}, error.request) from error

    async def _scope(self, user: User) -> Scope:
        """Return what a user may list: HyperJobs of all namespaces or of some, Clusters, Queues."""
        everywhere, clusters, queues = await asyncio.gather(
            self._may_list(user, HYPERJOBS),
            self._may_list(user, CLUSTERS),
            self._may_list(user, QUEUES),
        )
        namespaces: frozenset[str] | None = None
        if not everywhere:
            known = sorted(self._namespaces())
            allowed = await asyncio.gather(
                *(self._may_list(user, HYPERJOBS, namespace) for namespace in known)
            )
            namespaces = frozenset(
                namespace for namespace, may in zip(known, allowed, strict=True) if may
            )
        return Scope(namespaces=namespaces, clusters=clusters, queues=queues)

    async def _may_list(self, user: User, resource: Resource, namespace: str = "") -> bool:
        return await self._reviews.allows(AccessQuestion(user, "list", resource, namespace))

    async def _enter(self, token: str) -> str | None:
        """Return a session for a token; None when the API server does not accept the token."""
        if not token or len(token) > LONGEST_TOKEN or await self._user(token) is None:
            return None
        try:
            return self._sessions.begin(token)
        except ValueError as error:
            why = f"{error}: put an authenticating proxy before the page, which sends the token"
            raise refusal(400, why) from error

    async def _leave(self, _: web.Request) -> NoReturn:
        """Let the browser forget the session; a token of the Authorization header has none."""
        answer = web.HTTPSeeOther(self._login.path)
        answer.del_cookie(SESSION_COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
        raise answer


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
