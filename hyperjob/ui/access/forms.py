"""The checks of every request; a failed check raises an aiohttp exception."""

from collections.abc import Collection
from typing import Final

from aiohttp import web

from hyperjob.ui.access.answers import refusal
from hyperjob.ui.access.checks import SAFE_METHODS, refused
from hyperjob.ui.access.csrf import FIELD, HEADER, Csrf

_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


def check_site(request: web.Request, hosts: Collection[str]) -> None:
    """Raise for a request with another Host, or from a page of another site."""
    if why := refused(request.method, request.headers, hosts):
        raise refusal(403, why)


async def check_form(request: web.Request, csrf: Csrf, session: str, *, read_only: bool) -> None:
    """Raise for a request that changes something without a form of this session."""
    if request.method in SAFE_METHODS:
        return
    if read_only:
        raise refusal(403, "this page is read-only: hyperjob ui runs with --read-only")
    given = request.headers.get(HEADER, "")
    if not given and request.content_type in _FORMS:
        given = str((await request.post()).get(FIELD, ""))
    if not csrf.accepts(session, given):
        why = "the form has expired or is not of this page: go back, reload the page and try again"
        raise refusal(403, why)
