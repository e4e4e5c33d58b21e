"""The security headers of every answer, which restrict the browser."""

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
    # With "no-referrer" browsers would send no Origin with this page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Server": "hyperjob",
}


async def add_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the headers to an answer before its first byte is sent."""
    for name, value in HEADERS.items():
        if name not in response.headers:
            response.headers[name] = value
