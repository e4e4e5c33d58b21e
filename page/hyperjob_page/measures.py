"""The metrics of the page, requests, logins and streams, and the places for streams.

No label has a name that a visitor chooses.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import Counter as CounterMetric
from prometheus_client import Gauge

import hyperjob_core.kube.metrics  # noqa: F401 - the requests to the API server
from hyperjob_core.registry import REGISTRY

_REQUESTS: Final = CounterMetric(
    "hyperjob_page_requests",
    "Requests of visitors by page and HTTP status; closed: the visitor left before the answer",
    ("page", "code"),
    registry=REGISTRY,
)
LOGINS: Final = CounterMetric(
    "hyperjob_page_logins",
    "Tokens in the login form that the API server has accepted or refused",
    ("result",),
    registry=REGISTRY,
)
STREAMS: Final = Gauge(
    "hyperjob_page_streams", "Live pages and logs that visitors follow now", registry=REGISTRY
)
for _result in ("accepted", "refused"):
    LOGINS.labels(_result)


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count a request when its answer has ended."""
    resource, code = request.match_info.route.resource, "closed"
    try:
        response = await handler(request)
        code = str(response.status)
    except web.HTTPException as error:
        code = str(error.status)
        raise
    finally:
        _REQUESTS.labels("none" if resource is None else resource.canonical, code).inc()
    return response


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
