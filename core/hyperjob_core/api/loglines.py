"""The lines of a container's log: their times, and how far a log has been read. Pure.

A kubelet begins each line with a time in RFC 3339 with up to nine digits of a second, in UTC or in
the node's own time zone: times compare as numbers, never as texts.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Self

SECOND: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = 253402300800
_TIME: Final = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ", re.ASCII
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line as the kubelet sent it; `time` is in nanoseconds since 1970, 0 for a line without."""

    time: int
    raw: bytes

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """Parse the time at the start of a line."""
        found = _TIME.match(raw)
        if found is None:
            return cls(0, raw)
        second, decimals, zone = found.groups()
        whole = _seconds(second, zone)
        return cls(whole * SECOND + int((decimals or b"").ljust(9, b"0")) if whole else 0, raw)

    @property
    def text(self) -> bytes:
        """Return what the container wrote: the line without its time."""
        return self.raw[self.raw.index(b" ") + 1 :] if self.time else self.raw

    @property
    def moment(self) -> datetime:
        """Return the time of the line, which must have one, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.time // 1000)


@lru_cache(maxsize=64)
def _seconds(second: bytes, zone: bytes) -> int:
    """Return the seconds since 1970; 0 for no date of a calendar, and for one before 1970."""
    try:
        moment = datetime.fromisoformat((second + zone).decode())
    except ValueError:
        return 0
    seconds = int((moment - _EPOCH).total_seconds())
    return seconds if 0 < seconds < _LAST else 0


@dataclass(slots=True)
class Position:
    """How far a log has been read: a later stream of it yields each line once.

    A stream asks for the lines since the second of `newest`, the precision of `sinceTime`, and the
    server repeats `count` lines that were read before: lines of one instant differ in their number
    alone. After a rotation the server repeats fewer lines, and none that is later than `newest`
    was at the begin of the stream: a line is dropped only while both hold.
    """

    newest: int = 0
    count: int = 0
    _repeated: int = 0
    _before: int = 0

    @classmethod
    def after(cls, moment: datetime) -> Self:
        """Return the position behind all lines up to the microsecond of a moment."""
        return cls((moment - _EPOCH) // timedelta(microseconds=1) * 1000 + 999, sys.maxsize)

    def elsewhere(self) -> "Position":
        """Return the position in the log of another container: behind all lines up to `newest`."""
        return Position(self.newest, sys.maxsize if self.newest else 0)

    @property
    def since(self) -> dict[str, str]:
        """Return the parameter `sinceTime` of the next stream; none before the first line."""
        if not self.newest:
            return {}
        moment = _EPOCH + timedelta(seconds=self.newest // SECOND)
        return {"sinceTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def begin(self) -> None:
        """Begin a stream, which may repeat lines."""
        self._repeated, self._before = self.count, self.newest

    def fresh(self, lines: Iterable[LogLine]) -> list[LogLine]:
        """Return the next lines of the stream that were not read before, and count them as read.

        Lines without a time, such as an error of the kubelet, are returned and not counted.
        """
        return [line for line in lines if self._take(line)]

    def _take(self, line: LogLine) -> bool:
        if not line.time:
            return True
        start = self.newest - self.newest % SECOND
        if self._repeated and line.time <= self._before:
            self._repeated -= line.time >= start
            return False
        self._repeated = 0  # the lines of a log are sent in their order: all others are fresh
        if line.time >= start + SECOND:
            self.count = 0
        self.newest = max(self.newest, line.time)
        # A line before the second of `newest`, of a clock that was set back, is not repeated.
        self.count = min(self.count + (line.time >= start), sys.maxsize)
        return True
