"""Durations in Go's format, such as 1h30m, exact to the nanosecond; times after a duration.

A user may write any duration: no function here overflows.

Kubernetes' MicroTime: UTC with six digits.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_PART: Final = re.compile(r"(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?+(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MOST: Final = 2**63 - 1
MAX_LENGTH: Final = 128
"""The greatest number of characters; the longest duration that Go prints has 24."""

LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""The latest time that `later` returns; a text of RFC 3339 has no room for the year 10000."""

_LONGEST_SECONDS: Final = (LATEST - datetime.min.replace(tzinfo=UTC)) // timedelta(seconds=1)


def seconds(number: int) -> timedelta:
    """Return a number of seconds, at most as many as there are between any two times."""
    return timedelta(seconds=max(-_LONGEST_SECONDS, min(number, _LONGEST_SECONDS)))


def later(moment: datetime, span: timedelta) -> datetime:
    """Return the time after a span that is not negative, at most LATEST."""
    return moment + span if span < LATEST - moment else max(moment, LATEST)


def doubled(first: timedelta, times: int, most: timedelta) -> timedelta:
    """Return `first`, doubled so many times, at most `most`: the wait of a back-off."""
    factor = 1 << min(times, 16)
    return first * factor if first <= most // factor else most


def nanoseconds(text: str) -> int:
    """Return the nanoseconds of a duration, which may be negative.

    Raises ValueError for a text that Go refuses, or with more than MAX_LENGTH characters.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{text[:MAX_LENGTH]!r}… is not a duration")
    at = text[:1] in {"+", "-"}
    if not text[at:]:
        raise ValueError(f"{text!r} is not a duration")
    total = 0
    end = len(text) if text[at:] == "0" else int(at)
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            raise ValueError(f"{text!r} is not a duration")
        whole, fraction, size = part[1], part[2] or "", _NANOSECONDS[part[3]]
        total += int(whole or 0) * size + int(fraction or 0) * size // 10 ** len(fraction)
        end = part.end()
    if total > _MOST:
        raise ValueError(f"{text!r} is longer than 290 years")
    return -total if text[0] == "-" else total


def micro_time(moment: datetime) -> str:
    """Return a moment as MicroTime; raises ValueError for a moment without a time zone."""
    if moment.tzinfo is None:
        raise ValueError("a moment without a time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)
