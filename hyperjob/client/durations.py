"""Durations as kubectl reads and prints them: `90s`, `5m`, `3d4h`. Pure."""

from datetime import datetime

from hyperjob_core.api.duration import nanoseconds
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
