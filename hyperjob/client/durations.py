"""Durations as kubectl reads and prints them: `90s`, `5m`, `3d4h`. Pure."""

from datetime import datetime

from controller.model.wire import timestamp
from hyperjob.api.duration import nanoseconds
from hyperjob.text import human_duration


def parse_duration(text: str) -> float:
    """Read seconds from `30s`, `1h30m` or a bare number; ValueError for anything else."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        found = nanoseconds(text)
    except ValueError as error:
        raise ValueError(f"{error}: give for example 30s, 5m or 1h30m") from None
    if found < 0:
        raise ValueError(f"{text!r} is no duration: give for example 30s, 5m or 1h30m")
    return found / 1e9


def lasted(start: str, end: str) -> str:
    """Print how long something lasted; `-` where its start or end is not known."""
    began, ended = timestamp(start), timestamp(end)
    if began is None or ended is None:
        return "-"
    return human_duration((ended - began).total_seconds())


def age(time: object, now: datetime) -> str:
    """Print how long ago a time of an object was; `<unknown>` for none."""
    moment = timestamp(time)
    return "<unknown>" if moment is None else human_duration((now - moment).total_seconds())
