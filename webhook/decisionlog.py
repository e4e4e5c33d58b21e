"""Log lines of admitted requests, written in batches.

Thousands of decisions a second are as many lines; through `logging` they would cost as much as the
decisions. A line here is as the JSON formatter would print it, and holds only names that
are known to be harmless: whatever quotes an object goes through `logging`.
"""

import asyncio
from collections.abc import Callable
from time import gmtime, strftime, time
from typing import Final, Protocol

import orjson

BATCH_SECONDS: Final = 0.05
"""How late a line may be; what is logged elsewhere meanwhile comes first, by its `ts` in order."""
BATCH_BYTES: Final = 64 * 1024


class Sink(Protocol):
    """A binary stream."""

    def write(self, data: bytes, /) -> object:
        """Take bytes."""
        ...

    def flush(self) -> object:
        """Pass them on."""
        ...


class DecisionLog:
    """Collects lines, and writes them a moment later in one go."""

    def __init__(self, sink: Sink, *, clock: Callable[[], float] = time) -> None:
        self._sink = sink
        self._clock = clock
        self._lines: list[bytes] = []
        self._bytes = 0
        self._second = -1
        self._prefix = ""
        self._timer: asyncio.TimerHandle | None = None

    def write(self, message: str, fields: dict[str, object]) -> None:
        """Add a line at level info; call it in the event loop."""
        line = orjson.dumps(
            {"level": "info", "ts": self._now(), "logger": "webhook", "msg": message, **fields},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > BATCH_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what has been collected; a sink that is gone takes nothing down with it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        data = b"".join(self._lines)
        self._lines.clear()
        self._bytes = 0
        if data:
            try:
                self._sink.write(data)
                self._sink.flush()
            except (OSError, ValueError):  # logging, too, goes on without its stream
                return

    def _now(self) -> str:
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._second = second
            self._prefix = strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
        return f"{self._prefix}.{int((now - second) * 1000):03}Z"
