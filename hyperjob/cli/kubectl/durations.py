"""Spans of time as kubectl reads and prints them: `90s`, `5m`, `3d4h`. Pure."""

import re
from datetime import datetime

from controller.model.wire import timestamp

_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Read seconds from `30s`, `1h30m` or a bare number; ValueError for anything else."""
    if text.isascii() and text.isdigit():
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration: give for example 30s, 5m or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def human(seconds: float) -> str:
    """Print a span as kubectl prints ages: two units at most, coarser the longer it is."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def age(time: object, now: datetime) -> str:
    """Print how long ago a time of an object was; `<unknown>` for none."""
    moment = timestamp(time)
    return "<unknown>" if moment is None else human((now - moment).total_seconds())


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
