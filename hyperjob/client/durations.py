"""Durations as kubectl reads and prints them, and the expected start of a HyperJob. Pure."""

from datetime import datetime

from hyperjob_core.api import table
from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import ExpectedStart
from hyperjob_core.api.wire import timestamp
from hyperjob_core.text import human_duration


def parse_duration(text: str) -> float:
    """Return the seconds of `30s`, `1h30m` or a plain number; ValueError for other texts."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        found = nanoseconds(text)
    except ValueError as error:
        raise ValueError(f"{error}: give for example 30s, 5m or 1h30m") from None
    if found < 0:
        raise ValueError(f"{text!r} is not a duration: give for example 30s, 5m or 1h30m")
    return found / 1e9


def age(time: object, now: datetime) -> str:
    """Return the age of a timestamp in kubectl's form; `<unknown>` without a timestamp."""
    moment = timestamp(time)
    return "<unknown>" if moment is None else human_duration((now - moment).total_seconds())


def expected_words(expected: ExpectedStart, now: datetime, *, namespace: str = "") -> str:
    """Return the expectation as text; names of HyperJobs in `namespace` have no prefix."""
    other = expected.after.removeprefix(f"{namespace}/") if namespace else expected.after
    left = (expected.time - now).total_seconds()
    when = f"in about {rough(left)}" if left >= 60 else "within a minute"
    return f"expected to start {when}, when {other} ends ({expected.by})"


def expected_start_value(expected: ExpectedStart | None) -> Object:
    """Return the field `expectedStart` of JSON output; no field without an estimate."""
    return {} if expected is None else {"expectedStart": table.write(expected)}


def rough(seconds: float) -> str:
    """Return a duration in its largest units: `50 min`, `2 h 10 min`, `3 d 4 h`.

    From an hour on it is rounded to ten minutes, from a day on to an hour.
    """
    minutes = round(seconds / 60)
    if minutes >= 60:
        minutes = round(minutes / 10) * 10
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        days, hours = divmod(round(seconds / 3600), 24)
        return f"{days} d {hours} h" if hours else f"{days} d"
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
