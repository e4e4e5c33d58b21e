"""Lengths of time as Go writes and reads them, such as 1h30m. Exact to the nanosecond."""

import re
from typing import Final

_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"([+-]?)(0|(?:(?=\.?[0-9]){_PART.pattern})+)")
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


def nanoseconds(text: str) -> int:
    """Read a length of time, negative ones too; ValueError for what Go would not take."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration")
    total = 0
    for whole, fraction, unit in _PART.findall(match[2]):
        size = _NANOSECONDS[unit]
        total += int(whole or 0) * size + int(fraction or 0) * size // 10 ** len(fraction)
    if total > _MOST:
        raise ValueError(f"{text!r} is longer than 290 years")
    return -total if match[1] == "-" else total
