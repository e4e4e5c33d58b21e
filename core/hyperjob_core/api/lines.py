"""The lines of a container's log: their times, how far it was read, and progress lines. Pure.

A kubelet begins each line with a time in RFC 3339 with up to nine digits of a second, in UTC or in
the node's own time zone: times compare as numbers, never as texts.

A program prints its progress for the controller. A tenant writes the log, and a line may contain
anything: a line that is not a progress line in every part, or has a number out of range, is none.
"""

import math
import re
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Self

from hyperjob_core.api.wire import at, decoded
from hyperjob_core.text import printable, shortened

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


MAX_LINE: Final = 16 * 1024
"""The greatest length of a progress line in bytes; longer lines are ignored."""
MAX_STEP: Final = 2**53
"""The largest step: every program and every JSON reader has the same integers up to here."""
MAX_METRICS: Final = 16
_MARK: Final = b'"hyperjob"'
_SAVED: Final = b'"saved"'
_PHASE: Final = b'"phase"'
_PHASE_LIMIT: Final = 60
# A launcher may write a prefix such as a rank, and text after the object: both are skipped.
_OBJECT: Final = re.compile(rb'\{\s{0,8}"hyperjob"\s{0,8}:')
_URL: Final = re.compile(r"https?://[!-~]{1,1000}")
_METRIC: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,62}")
MOST_LINES: Final = 64
"""The progress lines of a part of a log that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressLine:
    """One progress line and its time by the node's clock.

    `sampled`: the process did not measure how long it waited, but looked at its calls. `skipped`:
    lines between this one and the one before were not parsed. `after_stall`: the program made no
    steps before it, as two looks have seen.
    """

    time: datetime
    step: int
    steps: int | None = None
    saved: int | None = None
    waited: float | None = None
    sampled: bool = False
    skipped: bool = False
    after_stall: bool = False
    metrics: Mapping[str, str] = field(default_factory=dict)
    url: str = ""


def progress_lines(lines: Sequence[LogLine]) -> list[ProgressLine]:
    """Parse the progress lines of a part of a log.

    Of more than MOST_LINES only the first one counts, the last one with a checkpoint, and the last
    MOST_LINES: time for parsing is bounded. A line after omitted ones is `skipped`.
    """
    earlier = [line for line in lines if _MARK in line.raw]
    last: deque[ProgressLine] = deque()
    while earlier and len(last) < MOST_LINES:
        if (found := parse(earlier.pop())) is not None:
            last.appendleft(found)
    first = next(filter(None, map(parse, earlier)), None)
    if first is None:
        return list(last)
    last[0] = replace(last[0], skipped=True)
    if not any(line.saved is not None for line in last):
        saved = (parse(line) for line in reversed(earlier) if _SAVED in line.raw)
        checkpoint = next((line for line in saved if line and line.saved is not None), None)
        if checkpoint is not None and checkpoint != first:
            last.appendleft(replace(checkpoint, skipped=True))
    return [first, *last]


def announced(lines: Sequence[LogLine]) -> list[tuple[datetime, str]]:
    """Return the last announcements of a part of a log, of phases without steps, with their times.

    A program that announces a phase makes no step before its next progress line.
    """
    found: list[tuple[datetime, str]] = []
    for line in reversed(lines):
        if _PHASE in line.raw and _MARK in line.raw and len(found) < MOST_LINES:
            fields = _progress_object(line) or {}
            phase = fields.get("phase")
            if isinstance(phase, str) and "step" not in fields:
                found.append((line.moment, shortened(printable(phase), _PHASE_LIMIT)))
    return found[::-1]


def is_for_controller(text: bytes) -> bool:
    """Return whether a line is a progress line or a stack, which people do not read."""
    return _MARK in text and _OBJECT.search(text) is not None and text.rstrip().endswith(b"}")


def _progress_object(line: LogLine) -> dict[str, Any] | None:
    """Return the object of a line for the controller; None if it has none."""
    raw = line.raw
    start = _OBJECT.search(raw) if line.time and len(raw) <= MAX_LINE else None
    if start is None:
        return None
    end = raw.rfind(b"}") + 1
    try:
        fields = at(decoded(raw[start.start() : end]), "hyperjob")
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def parse(line: LogLine) -> ProgressLine | None:
    """Parse one line; None if it is not a progress line."""
    fields = _progress_object(line)
    if fields is None:
        return None
    step = _parsed_step(fields.get("step"))
    if step is None:
        return None
    steps, saved = _parsed_step(fields.get("steps")), _parsed_step(fields.get("saved"))
    waited, sampled = _fraction(fields.get("waited")), _fraction(fields.get("sampled"))
    return ProgressLine(
        time=line.moment,
        step=step,
        steps=steps or None,
        # A checkpoint of a later step than the present one is an error of the program.
        saved=saved if saved is not None and saved <= step else None,
        waited=waited if waited is not None else sampled,
        sampled=waited is None,
        metrics=_metrics(fields.get("metrics")),
        url=web_address(fields.get("url")),
    )


def web_address(value: object) -> str:
    """Return an address of http or https that a link may have; empty for anything else."""
    text = value if isinstance(value, str) else ""
    return text if _URL.fullmatch(text) else ""


def waits_of(lines: Sequence[LogLine]) -> dict[int | None, list[float]]:
    """Return the parts of its time that each process waits, by its rank.

    A line of the process that prints the progress of its pod has no rank.
    """
    found: dict[int | None, list[float]] = {}
    for line in lines:
        fields = _progress_object(line) if _MARK in line.raw else None
        if fields is not None and ("step" in fields or "rank" in fields):
            waited, sampled = _fraction(fields.get("waited")), _fraction(fields.get("sampled"))
            part = waited if waited is not None else sampled
            if part is not None:
                found.setdefault(_parsed_step(fields.get("rank")), []).append(part)
    return found


def _parsed_step(value: object) -> int | None:
    """Return a step; a language without integers prints it as 1200.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_STEP else None


def _fraction(value: object) -> float | None:
    """Return a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


def _metrics(value: object) -> dict[str, str]:
    """Return at most MAX_METRICS finite numbers as decimal text, by names that a label may have."""
    if not isinstance(value, dict):
        return {}
    found: dict[str, str] = {}
    for name, number in value.items():
        if len(found) == MAX_METRICS:
            break
        if not _METRIC.fullmatch(name) or isinstance(number, bool):
            continue
        if isinstance(number, int | float) and math.isfinite(number):
            found[name] = f"{number:.6g}"
    return found
