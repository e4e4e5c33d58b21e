"""Answers as they go on the wire.

An admission answer is always the same few header lines and a body; writing them as one piece of
bytes takes half the time that a general response takes, a tenth of a whole request.
"""

from email.utils import formatdate
from time import time
from typing import Final, cast

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from webhook.admission import Reply

_HEADERS: Final = {"Content-Type": "application/json"}


class Answers:
    """Makes the responses of one server."""

    def __init__(self) -> None:
        self._second = -1
        self._head = b""

    def make(self, request: web.BaseRequest, reply: Reply, *, close: bool) -> web.StreamResponse:
        """Return the response to a request; with `close` it is the connection's last."""
        usual = reply.status == 200 and request.keep_alive and request.version == HttpVersion11
        if usual and not close:
            # aiohttp asks no more of a response than `prepare`, `write_eof` and `keep_alive`.
            return cast("web.StreamResponse", _Whole(self._head_now(), reply.body))
        response = web.Response(body=reply.body, status=reply.status, headers=_HEADERS)
        if close:
            response.force_close()
        return response

    def _head_now(self) -> bytes:
        second = int(time())
        if second != self._second:
            self._second = second
            date = formatdate(second, usegmt=True)
            self._head = (
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                f"Date: {date}\r\nContent-Length: "
            ).encode("ascii")
        return self._head


class _Whole:
    """A response that is written in one go."""

    __slots__ = ("_data", "_writer")

    keep_alive = True

    def __init__(self, head: bytes, body: bytes) -> None:
        self._data = b"%b%d\r\n\r\n%b" % (head, len(body), body)

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Take note of where to write."""
        self._writer = request.writer
        return self._writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Write head and body, and wait if the client does not read."""
        await self._writer.write_eof(self._data + data)
