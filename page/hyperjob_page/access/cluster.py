"""Access in a cluster: every visitor has a bearer token of the Karmada API server.

An authenticating proxy sends the token with each request (Authorization header), or the visitor
enters it once at the login and gets a cookie, in which only this page can read it. The API server
identifies the user (TokenReview) and decides what the user may list (SubjectAccessReview). All
requests beyond the lists use the visitor's own token: the account of this process needs no rights
for them.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Self

from aiohttp import web

from hyperjob_core.kube.accessreviews import AccessQuestion, AccessReviews, User, bearer
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, Unauthorized
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, QUEUES, Resource
from hyperjob_page.access import checks
from hyperjob_page.access.answers import login_first, refusal, reload
from hyperjob_page.access.csrf import Csrf
from hyperjob_page.access.forms import check_form, check_site
from hyperjob_page.access.login import SESSION_COOKIE as COOKIE
from hyperjob_page.access.login import Login
from hyperjob_page.access.sessions import Sessions, derived
from hyperjob_page.visitor import Scope

LONGEST_TOKEN: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class ClusterVisitor:
    """A user of the Karmada API server; `kube` sends the user's own token."""

    user: User
    csrf: str
    kube: Kube
    reviews: AccessReviews
    scope: Scope
    read_only: bool
    can_log_out: bool

    @property
    def name(self) -> str:
        """Return the user's name."""
        return self.user.name

    async def may(self, verb: str, namespace: str, name: str) -> bool:
        """Return whether the visitor may use `verb` on a HyperJob; False if the review fails."""
        if self.read_only:
            return False
        try:
            return await self.reviews.allows(
                AccessQuestion(self.user, verb, HYPERJOBS, namespace, name)
            )
        except KubeError:
            return False


class ClusterAccess:
    """Admits visitors whose token the API server accepts; use with `async with`.

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
        clock = clock or asyncio.get_running_loop().time
        self._acting = acting
        self._hosts = frozenset(host.lower() for host in hosts)
        self._namespaces = namespaces
        self._read_only = read_only
        self._reviews = AccessReviews(kube, clock=clock)
        self._sessions = Sessions(key, now=now)
        self._csrf = Csrf(derived(key, "csrf"))
        self._login = Login(self._enter, csrf=self._csrf, hosts=self._hosts)

    async def __aenter__(self) -> Self:
        await self._reviews.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._reviews.__aexit__(None, None, None)

    def listens_on(self, host: str, port: int) -> str:
        """Return the listen address; visitors may use another address, of a proxy."""
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    @property
    def public(self) -> frozenset[str]:
        """Return the paths that need no session."""
        return frozenset({self._login.path})

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes of login and logout."""
        return (*self._login.routes(), web.post("/logout", self._leave))

    async def visitor(self, request: web.Request) -> ClusterVisitor:
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
        return ClusterVisitor(
            user=user,
            csrf=self._csrf.token(session),
            kube=self._acting(token),
            reviews=self._reviews,
            scope=scope,
            read_only=self._read_only,
            can_log_out=session == request.cookies.get(COOKIE),
        )

    def _credentials(self, request: web.Request) -> tuple[str, str]:
        """Return the token, and the session for the CSRF tokens of forms."""
        if token := bearer(request.headers):
            if len(token) > LONGEST_TOKEN:
                raise refusal(401, "the bearer token is too long")
            return token, hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
        cookie = request.cookies.get(COOKIE, "")
        return self._sessions.token(cookie) or "", cookie

    def _is_closed(self, request: web.Request) -> bool:
        return self._read_only and request.path != "/logout"

    def _stranger(self, request: web.Request) -> web.HTTPException:
        if checks.came_by_a_link(request.headers) and COOKIE not in request.cookies:
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
        answer.del_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
        raise answer
