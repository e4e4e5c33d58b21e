"""Places for the streams of visitors, live pages and logs that they follow, and their events."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson
from aiohttp import web

from hyperjob_page.measures import STREAMS

WRITE_SECONDS: Final = 20.0
"""Time limit of a write to a visitor's stream."""


class StreamPlaces:
    """At most `limit` streams at a time, and at most `per_user` of a user with a name.

    The user of `hyperjob ui` on one machine has no name, and may have all places.
    """

    def __init__(self, *, limit: int, per_user: int) -> None:
        self._limit = limit
        self._per_user = per_user
        self._users: Counter[str] = Counter()

    @contextmanager
    def taken(self, user: str) -> Iterator[None]:
        """Hold a place for the length of the block; raises HTTPServiceUnavailable without one."""
        if self._users.total() >= self._limit:
            raise _no_place("the page has too many viewers")
        if user and self._users[user] >= self._per_user:
            raise _no_place(f"you have {self._per_user} streams already: close another tab")
        self._users[user] += 1
        STREAMS.inc()
        try:
            yield
        finally:
            STREAMS.dec()
            self._users[user] -= 1
            if not self._users[user]:
                del self._users[user]


def _no_place(text: str) -> web.HTTPException:
    return web.HTTPServiceUnavailable(text=text, headers={"Retry-After": "30"})


async def send_event(response: web.StreamResponse, event: str, value: object) -> None:
    """Send a server-sent event with a value as JSON; raises TimeoutError for a slow reader."""
    data = b"event: " + event.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(data)
