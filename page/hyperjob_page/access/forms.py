"""The checks of every request; a failed check raises an aiohttp exception."""

from collections.abc import Collection, Mapping
from typing import Final

from aiohttp import web

from hyperjob_page.access.answers import refusal
from hyperjob_page.access.checks import SAFE_METHODS, refused
from hyperjob_page.access.csrf import FIELD, HEADER, Csrf

_FORM: Final = "application/x-www-form-urlencoded"


def check_site(request: web.Request, hosts: Collection[str]) -> None:
    """Raise for a request with another Host, or from a page of another site."""
    if why := refused(request.method, request.headers, hosts):
        raise refusal(403, why)


async def check_form(request: web.Request, csrf: Csrf, session: str, *, read_only: bool) -> None:
    """Raise 403 for a change of a read-only page, or without the token of this session.

    A change is a request of any method but GET and HEAD. Its token is in the header HEADER, else in
    the form field FIELD. Raises also as `form_fields` does.
    """
    if request.method in SAFE_METHODS:
        return
    if read_only:
        raise refusal(403, "this page is read-only: hyperjob ui runs with --read-only")
    given = request.headers.get(HEADER, "")
    if not given:
        given = (await form_fields(request)).get(FIELD, "")
    if not csrf.accepts(session, given):
        why = "the form has expired or is not of this page: go back, reload the page and try again"
        raise refusal(403, why)


async def form_fields(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form, without any for a body of another type.

    Raises 400 for a form that its charset cannot decode, and 413 for a body above the limit.
    """
    if request.content_type != _FORM:
        return {}
    try:
        form = await request.post()
    except (LookupError, ValueError) as error:
        raise refusal(400, "the form cannot be read in the charset of its Content-Type") from error
    return {name: str(form[name]) for name in form}
