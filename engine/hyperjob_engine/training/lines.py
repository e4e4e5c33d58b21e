"""The parser of progress lines in the log of a training. Pure.

A tenant writes the log, and a line may contain anything. The parser ignores a line that is not a
progress line in every part, or that has a number out of range.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

MAX_LINE: Final = 16 * 1024
"""The greatest length of a progress line in bytes; longer lines are ignored."""
MAX_STEP: Final = 2**53
"""The largest step: every program and every JSON reader has the same integers up to here."""
MAX_METRICS: Final = 16
_MARK: Final = b'"hyperjob"'
# A launcher may write a prefix such as a rank, and text after the object: both are skipped.
_OBJECT: Final = re.compile(rb'\{\s{0,8}"hyperjob"\s{0,8}:')
_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z ")
_METRIC: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressLine:
    """One progress line and its time by the node's clock."""

    time: datetime
    step: int
    steps: int | None = None
    saved: int | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)


def progress_lines(log: bytes, *, since: bytes = b"") -> Iterator[ProgressLine]:
    """Yield the progress lines of a log with timestamps that are later than `since`."""
    for line in log.split(b"\n"):
        time = time_of(line)
        if _MARK in line and len(line) <= MAX_LINE and time > since:
            found = parse(line)
            if found is not None:
                yield found


def time_of(line: bytes) -> bytes:
    """Return the time at the start of a line in a sortable form; empty if there is none.

    The kubelet prints the decimals of a second without trailing zeros.
    """
    found = _TIME.match(line)
    return found[1] + b"." + (found[2] or b"").ljust(9, b"0") + b"Z" if found else b""


def parse(line: bytes) -> ProgressLine | None:
    """Parse one line with its timestamp; None if it is not a progress line."""
    stamp = _TIME.match(line)
    start = _OBJECT.search(line)
    if stamp is None or start is None or len(line) > MAX_LINE:
        return None
    end = line.rfind(b"}") + 1
    try:
        document = orjson.loads(line[start.start() : end])
        time = _moment(stamp)
    except ValueError:
        return None
    fields = document.get("hyperjob")
    if not isinstance(fields, dict):
        return None
    step = _step(fields.get("step"))
    if step is None:
        return None
    steps, saved = _step(fields.get("steps")), _step(fields.get("saved"))
    return ProgressLine(
        time=time,
        step=step,
        steps=steps or None,
        # A checkpoint of a later step than the present one is an error of the program.
        saved=saved if saved is not None and saved <= step else None,
        metrics=_metrics(fields.get("metrics")),
    )


def _moment(stamp: re.Match[bytes]) -> datetime:
    seconds = datetime.fromisoformat(stamp[1].decode()).replace(tzinfo=UTC)
    return seconds + timedelta(microseconds=int((stamp[2] or b"0").ljust(6, b"0")[:6]))


def _step(value: object) -> int | None:
    """Return a step; a language without integers prints it as 1200.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_STEP else None


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
