"""The headers of every answer: what browsers may do with a page of ours, which is very little."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers send no Origin with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Server": "hyperjob",
}


async def add_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Put them on an answer, before its first byte goes out."""
    for name, value in HEADERS.items():
        if name not in response.headers:
            response.headers[name] = value
