"""The login form, which exchanges a bearer token for a cookie."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from aiohttp import web

from hyperjob_core.kube.errors import KubeError
from hyperjob_page.access.answers import refusal
from hyperjob_page.access.checks import local_path
from hyperjob_page.access.csrf import FIELD, Csrf
from hyperjob_page.access.forms import check_site, form_fields
from hyperjob_page.measures import LOGINS
from hyperjob_page.render import render

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
        answer = web.Response(text=str(text), content_type="text/html", status=status)
        _set(answer, FORM_COOKIE, browser, max_age=_FORM_SECONDS)
        return answer


def _set(answer: web.StreamResponse, name: str, value: str, *, max_age: int | None = None) -> None:
    answer.set_cookie(
        name, value, max_age=max_age, path="/", secure=True, httponly=True, samesite="Strict"
    )
