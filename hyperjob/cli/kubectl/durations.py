"""Spans of time as kubectl reads and prints them: `90s`, `5m`, `3d4h`. Pure."""

import re
from datetime import datetime

from controller.model.wire import timestamp
from hyperjob.text import human_duration

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


def age(time: object, now: datetime) -> str:
    """Print how long ago a time of an object was; `<unknown>` for none."""
    moment = timestamp(time)
    return "<unknown>" if moment is None else human_duration((now - moment).total_seconds())
