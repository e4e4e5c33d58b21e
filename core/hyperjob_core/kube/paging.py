"""The pages of a list, and what a client accepts of them: bounds on objects, bytes and time.

A list without an end fills no memory, and holds its reader for a bounded time.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import TooLarge, too_large, unreachable
from hyperjob_core.kube.resources import Resource
from hyperjob_core.kube.transport import Params, Response

LONGEST_VERSION: Final = 128
"""The longest resourceVersion; it is a part of the address of the next watch."""
LONGEST_TOKEN: Final = 4096
"""The longest token of a page, which is a part of the next address."""
_AT_ONCE: Final = 10
"""The objects of a page that are transformed before the CPU time of the turn is read."""
_TURN_SECONDS: Final = 0.005
"""The CPU time after which a turn of the event loop ends."""
_SMALLER: Final = 8
"""By what the limit of a page is divided after a page that was too large."""
_SLOW_SECONDS: Final = 1.0
"""The CPU time of a list that makes it slow; one of 5,000 pods takes about half of it."""
_REST: Final = 3
"""How many times its CPU time passes after a page of a slow list until the next one of any."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that one list may have: objects and pages, bytes of all bodies, and seconds.

    Kubernetes supports 150,000 pods in a cluster.
    """

    items: int = 200_000
    bytes: int = 1024 * 1024 * 1024
    seconds: float = 300.0


class Decoding:
    """The turns of all lists of a client and of its members to decode a page: one at a time.

    A page takes many times its bytes while it is decoded. Slow lists together get a quarter of one
    CPU: a member whose list has no end delays no other.
    """

    def __init__(self, cpu: Callable[[], float] = time.thread_time) -> None:
        self.page = asyncio.Lock()
        self.cpu = cpu
        self._slow = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, taken: float, last: float) -> AsyncGenerator[None, None]:
        """Wait for the turn to read a page, after the CPU time of its list and of its last page."""
        if taken < _SLOW_SECONDS:
            yield
            return
        async with self._slow:
            await asyncio.sleep(_REST * last)
            yield


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A complete list; a watch from `resource_version` has all later changes."""

    items: list[Object]
    resource_version: str


async def read_pages(
    get: Callable[[Params], Awaitable[Response]],
    resource: Resource,
    request: str,
    *,
    limit: int,
    transform: Callable[[Object], Object],
    bounds: Bounds,
    decoding: Decoding,
    pages: AbstractAsyncContextManager[object],
) -> ObjectList:
    """Return a list of pages of `limit` objects; its version is that of the first page.

    A page that is too large is read in smaller ones. `transform` is applied to each object of a
    page: only its result stays in memory. Other tasks run between some objects of a page. `pages`
    is entered for each page. Raises Gone if the token of a page has expired, TooLarge beyond the
    bounds.
    """
    items: list[Object] = []
    version, position = "", dict[str, str]()
    size = number = 0
    taken = last = 0.0
    while True:
        async with decoding.turn(taken, last), pages:
            try:
                response = await get({"limit": str(limit), **position})
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // _SMALLER)
                continue
            async with decoding.page:
                began = decoding.cpu()
                found, first, token = _page(response, resource, request)
                size, number, version = size + len(response.body), number + 1, version or first
                if len(items) + len(found) + number > bounds.items:
                    most = f"{bounds.items} objects and pages"
                    raise too_large(request, f"the list has more than {most}")
                if size > bounds.bytes:
                    raise too_large(request, f"the list has more than {bounds.bytes} bytes")
                last, turn = 0.0, decoding.cpu() - began
                while found:
                    began = decoding.cpu()
                    items += map(transform, found[:_AT_ONCE])
                    del found[:_AT_ONCE]
                    turn += decoding.cpu() - began
                    if turn > _TURN_SECONDS or not found:
                        last, turn = last + turn, 0.0
                        await asyncio.sleep(0)
                last += turn
                taken += last
                del response
        if not token:
            return ObjectList(items, version)
        position = {"continue": token}


def object_of(response: Response, request: str) -> Object:
    """Return the object of a response; raises Unavailable for another body."""
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise unreachable(request, "the answer is no JSON object")
    return answer


def short(value: object, most: int) -> str:
    """Return a text of at most so many characters; raises ValueError for any other value."""
    if not isinstance(value, str) or len(value) > most:
        raise ValueError(f"no text of at most {most} characters")
    return value


def _page(response: Response, resource: Resource, request: str) -> tuple[list[Object], str, str]:
    """Return the objects of a page, the version of the list, and the token of the next page.

    Raises Unavailable on garbage.
    """
    page = object_of(response, request)
    try:
        items = page.get("items") or []
        for item in items:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)  # items of built-in lists have neither
            item["metadata"]["name"]  # `key_of` needs it
        metadata = page.get("metadata") or {}
        version = short(metadata.get("resourceVersion") or "", LONGEST_VERSION)
        token = short(metadata.get("continue") or "", LONGEST_TOKEN)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreachable(request, "the list carries garbage") from error
    return items, version, token
