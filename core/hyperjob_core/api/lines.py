"""The lines of a stream, and those of a container's log: their times, how far it was read. Pure.

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


class Splitter:
    """Splits a stream into lines without their newlines; holds at most `longest` bytes.

    The rest of a longer line is dropped, from the begin of a character of UTF-8 on; `cut` then
    stays true. `size` is of the line that has not ended yet.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self.size = 0
        self.cut = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this part of the stream, empty ones too."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._hold(end)
            lines.append(self.rest())
        if rest:
            self._hold(rest)
        return lines

    def rest(self) -> bytes:
        """Remove and return the line that has not ended yet; empty if there is none."""
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return line

    def _hold(self, part: bytes) -> None:
        """Add a part of a line, up to one byte above `longest`, from which `_boundary` cuts."""
        room = self._longest - self.size
        self.size += len(part)
        if room < 0:
            return  # the line has been cut
        if len(part) > room:
            self.cut = True
            held = b"".join([*self._parts, part[: room + 1]])
            self._parts[:] = [held[: _boundary(held, self._longest)]]
        elif part:
            self._parts.append(part)


def _boundary(text: bytes, end: int) -> int:
    """Return the last begin of a character of UTF-8 at or before `end`; `end` in other texts."""
    for start in range(end, max(-1, end - 4), -1):
        if text[start] & 0xC0 != 0x80:
            return start
    return end


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
        """Return whether a line of the stream was not read before, and count it as read."""
        if not line.time:
            return True
        start = self.newest - self.newest % SECOND  # `count` has the lines from here on
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
