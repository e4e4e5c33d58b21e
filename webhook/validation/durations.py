"""Lengths of time as Go writes them, such as 1h30m."""

import re
from typing import Final

from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, rule

_PART: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION: Final = re.compile(rf"(?P<sign>[+-]?)(?:0|(?:{_PART})+)")
MAX_LENGTH: Final = 64

MALFORMED = rule(
    "V6",
    INVALID,
    "must be a duration, such as 30s, 10m or 1h30m",
    "a length of time is no duration as Go writes it",
    "write a number and a unit: ns, us, ms, s, m or h",
)
NEGATIVE = rule(
    "V6",
    INVALID,
    "must not be negative",
    "a length of time is negative",
    "use a positive one",
)


def validate_duration(value: str, path: Path, report: Report) -> None:
    """Check a length of time."""
    match = _DURATION.fullmatch(value) if len(value) <= MAX_LENGTH else None
    if match is None:
        report.add(MALFORMED, path, value)
    elif match["sign"] == "-":
        report.add(NEGATIVE, path, value)
