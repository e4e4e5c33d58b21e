"""The log lines of allowed requests, written in batches.

Thousands of decisions per second have as many lines, which through `logging` would cost as much CPU
as the decisions. A line has the form of the JSON formatter and only checked names: a line that
quotes an object goes through `logging`.
"""

import asyncio
from collections.abc import Callable
from time import gmtime, strftime, time
from typing import Final, Protocol

import orjson

BATCH_SECONDS: Final = 0.05
"""The greatest delay of a line in seconds; other lines may come before it with a later `ts`."""
BATCH_BYTES: Final = 64 * 1024


class Sink(Protocol):
    """A binary stream."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""
        ...

    def flush(self) -> object:
        """Flush the written bytes."""
        ...


class DecisionLog:
    """Collects lines and writes them together after BATCH_SECONDS."""

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
            {
                "level": "info",
                "ts": self._now(),
                "logger": "hyperjob_webhook",
                "msg": message,
                **fields,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > BATCH_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the collected lines; an error of the sink is ignored, as in `logging`."""
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
            except (OSError, ValueError):  # logging, too, ignores a closed stream
                return

    def _now(self) -> str:
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._second = second
            self._prefix = strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
        return f"{self._prefix}.{int((now - second) * 1000):03}Z"
