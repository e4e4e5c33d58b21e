"""The HTTP connections of the page: limits, a time limit for each header, headers of answers.

Where the server has too many connections, it closes the oldest connection without a visitor.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_protocol import RequestHandler

from hyperjob_core.serving.table import Connection, ConnectionTable, Rank

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
"""The security headers of every answer, which restrict the browser."""
CONNECTIONS: Final = 1024
"""More than all live streams and log followers together."""
CONNECTIONS_PER_PEER: Final = 768
"""Of one address: an authenticating proxy has one address for all visitors."""
HEADER_SECONDS: Final = 10.0
"""From the begin of a connection, or from the first byte of a later request, to its header."""


class PageProtocol(RequestHandler):
    """A connection of the page's server."""

    __slots__ = ("_connection", "_deadline", "_header_seconds", "_idle", "_table")

    def __init__(
        self,
        server: web.Server,
        connection: Connection,
        *,
        table: ConnectionTable,
        header_seconds: float,
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # an access log would have the token
        )
        self._connection = connection
        self._table = table
        self._header_seconds = header_seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._idle = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the first header."""
        super().connection_made(transport)
        self._header_begins()

    def data_received(self, data: bytes) -> None:
        """Parse bytes; between requests they begin a header."""
        super().data_received(data)
        if self._idle and self._deadline is None:
            self._header_begins()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the time limit."""
        self._header_ends()
        super().connection_lost(exc)

    def request_begins(self) -> None:
        """Record that the header of a request is complete."""
        self._idle = False
        self._header_ends()

    def visitor_known(self) -> None:
        """Record that the request is a visitor's: the server closes the connection last."""
        self._table.move(self._connection, Rank.BUSY)

    def request_ends(self) -> None:
        """Record that the request is answered."""
        self._idle = True
        if self._connection.rank is Rank.BUSY:
            self._table.move(self._connection, Rank.KNOWN)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to bytes that are no request, with the headers of every answer."""
        response = super().handle_error(request, status, exc, message)
        response.headers.update(HEADERS)
        return response

    def _header_begins(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._header_seconds, self._abort)

    def _header_ends(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Record begin and end of a request at its connection."""
    connection = request.protocol
    if not isinstance(connection, PageProtocol):  # the server of a test
        return await handler(request)
    connection.request_begins()
    try:
        return await handler(request)
    finally:
        connection.request_ends()
