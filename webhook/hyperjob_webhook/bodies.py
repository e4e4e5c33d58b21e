"""The request bodies that are being read or wait for a decision, bounded in number and memory.

If there are too many, the oldest body of the peer with the most is dropped: the body of a review
arrives within milliseconds, a body that is sent slowly or without an end becomes old.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import StreamReader

from hyperjob_webhook.review import MAX_BODY_BYTES

MEMORY_BYTES: Final = 8 * MAX_BODY_BYTES
"""The greatest size of all bodies of a process together, in bytes."""


class BodyTooLarge(Exception):  # noqa: N818 - a verdict on what was sent
    """One body is larger than any review."""


@dataclass(slots=True, eq=False)
class Body:
    """One body; `size` is the number of bytes that have arrived."""

    peer: str
    deadline: asyncio.Timeout
    size: int = 0
    gave_way: bool = False


class Bodies:
    """The bodies of one server that have no decision yet."""

    def __init__(self, *, at_a_time: int, memory_bytes: int = MEMORY_BYTES) -> None:
        self._at_a_time = at_a_time
        self._memory_bytes = memory_bytes
        self._bodies: dict[Body, None] = {}
        self._size = 0

    @contextmanager
    def taken(self, body: Body) -> Iterator[None]:
        """Count a body while inside the context; its `deadline` passes at once if it is dropped."""
        if len(self._bodies) >= self._at_a_time:
            self._give_way(by_size=False)
        self._bodies[body] = None
        try:
            yield
        finally:
            self.release(body)

    async def read(self, body: Body, content: StreamReader) -> bytes:
        """Read a body to its end; raise `BodyTooLarge`, or the error of the connection."""
        pieces: list[bytes] = []
        while piece := await content.readany():
            if body.gave_way:
                await asyncio.sleep(0)  # raises TimeoutError, because the deadline has passed
            body.size += len(piece)
            self._size += len(piece)
            if body.size > MAX_BODY_BYTES:
                raise BodyTooLarge
            pieces.append(piece)
            while self._size > self._memory_bytes:
                self._give_way(by_size=True)
            if body.gave_way:
                await asyncio.sleep(0)
        return b"".join(pieces)

    def release(self, body: Body) -> None:
        """Stop counting a body, before its decision or when it is dropped."""
        if body in self._bodies:
            del self._bodies[body]
            self._size -= body.size

    def _give_way(self, *, by_size: bool) -> None:
        weights: Counter[str] = Counter()
        for body in self._bodies:
            weights[body.peer] += body.size if by_size else 1
        ((heaviest, _),) = weights.most_common(1)
        victim = next(body for body in self._bodies if body.peer == heaviest)
        victim.gave_way = True
        self.release(victim)
        victim.deadline.reschedule(asyncio.get_running_loop().time())
