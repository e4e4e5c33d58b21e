"""The reader and follower of a container's log.

A stream of a log may end at any time: a kubelet restarts, a proxy closes a silent connection, the
network breaks. The follower then continues after the last line that it has read.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from hyperjob_core.api.lines import LogLine, Position, Splitter
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import (
    BadRequest,
    InternalError,
    KubeError,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from hyperjob_core.kube.ratelimit import Backoff

LONGEST_LINE: Final = 1024 * 1024
"""The longest line in bytes; the rest of a longer line is dropped."""
_PART: Final = 64 * 1024
_TRIES: Final = 5
_ENDED_SECONDS: Final = 5.0
_BEGINNING: Final = frozenset({"tailLines", "sinceSeconds"})

Batch = list[LogLine]
"""The lines of at most 64 KiB of a stream."""


@dataclass(eq=False)
class Log:
    """The log of one container, at `path`.

    `position` is behind the lines that were read, `size` the bytes of the last stream. `turn` is
    awaited before each batch is parsed, which takes a few milliseconds, and `opened` is called for
    each stream, as soon as its log is open.
    """

    kube: Kube
    path: str
    _: KW_ONLY
    container: str
    position: Position = field(default_factory=Position)
    longest: int = LONGEST_LINE
    turn: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)
    opened: Callable[[], None] | None = None
    size: int = field(default=0, init=False)
    _begun: bool = field(default=False, init=False)
    _rest: bytes = field(default=b"", init=False)

    async def read(
        self,
        query: Mapping[str, str],
        *,
        most: int | None = None,
        idle_limit: float | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """Yield the present lines after `position`, at most `most` bytes of them.

        Raises KubeError: NotFound or BadRequest where the container has not started.
        """
        stream = self._stream(dict(query), most=most, idle_limit=idle_limit)
        async with aclosing(stream) as batches:
            async for batch in batches:
                yield batch
        if last := self._last():
            yield last

    async def follow(
        self, query: Mapping[str, str], *, most: int | None = None
    ) -> AsyncGenerator[Batch, None]:
        """Yield lines after `position` as they arrive, until the log ends or `most` bytes came.

        The log has ended when a stream without a new line ends soon after its begin, or when its
        pod is gone. Raises KubeError if the first stream is refused, or after several tries.
        """
        # `failures` and `brief` count streams in a row: failed ones, and ones that ended soon.
        pauses, failures, brief, size = Backoff(base=0.5), 0, 0, 0
        while True:
            begun, fresh, timeless = _clock(), False, False
            stream = self._stream(
                {**query, "follow": "true"}, most=None if most is None else most - size
            )
            try:
                async with aclosing(stream) as batches:
                    async for batch in batches:
                        fresh = fresh or any(line.time for line in batch)
                        timeless = timeless or not all(line.time for line in batch)
                        yield batch
            except (NotFound, BadRequest):
                if not self.position.newest:
                    raise
                break  # the pod is gone
            except (Unavailable, InternalError, TooManyRequests) as error:
                failures = 1 if fresh else failures + 1
                if failures >= _TRIES or not self._worth_another_try(error):
                    raise
                size += self.size
            else:
                failures = 0
                size += self.size
                if most is not None and size >= most:
                    return
                soon = _clock() - begun < _ENDED_SECONDS
                if not fresh and (soon or timeless):
                    break
                brief = brief + 1 if soon else 0
                if brief <= 1:
                    pauses.reset()
                    continue
            await asyncio.sleep(pauses.next())
        if last := self._last():
            yield last

    def _last(self) -> Batch:
        """Return the last line of an ended log, where it has no newline."""
        return self.position.fresh([LogLine.of(self._rest)] if self._rest else [])

    def _worth_another_try(self, error: KubeError) -> bool:
        """Return whether a log exists that another stream may continue."""
        answered = isinstance(error, Unavailable) and error.answered
        return bool(self.position.newest) or answered

    async def _stream(
        self, query: dict[str, str], *, most: int | None, idle_limit: float | None = None
    ) -> AsyncGenerator[Batch, None]:
        """Yield the fresh lines of one stream; `_rest` is then its last line without a newline."""
        if self._begun and "follow" in query:
            query = {name: value for name, value in query.items() if name not in _BEGINNING}
        params = {
            **query,
            **self.position.since,
            "timestamps": "true",
            "container": self.container,
        }
        self.position.begin()
        splitter, self.size, self._rest = Splitter(self.longest), 0, b""
        stream = self.kube.stream(
            self.path, params=params, idle_limit=idle_limit, opened=self.opened
        )
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                room = len(chunk) if most is None else min(len(chunk), most - self.size)
                self.size += room
                for start in range(0, room, _PART):
                    await self.turn()
                    lines = splitter.feed(chunk[start : min(start + _PART, room)])
                    if batch := self.position.fresh(map(LogLine.of, lines)):
                        self._begun = self._begun or bool(self.position.newest)
                        yield batch
                if most is not None and self.size >= most:
                    return
        self._rest = splitter.rest()


def _clock() -> float:
    return asyncio.get_running_loop().time()
