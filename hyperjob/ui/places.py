"""Places for the streams of visitors: live pages, and logs that visitors follow."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


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
            raise _refused("the page has too many viewers")
        if user and self._users[user] >= self._per_user:
            raise _refused(f"you have {self._per_user} streams already: close another tab")
        self._users[user] += 1
        try:
            yield
        finally:
            self._users[user] -= 1
            if not self._users[user]:
                del self._users[user]


def _refused(text: str) -> web.HTTPException:
    return web.HTTPServiceUnavailable(text=text, headers={"Retry-After": "30"})
