"""Validation of durations as Go writes them, such as 1h30m."""

from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.field import Path
from hyperjob_rules.validation.rules import INVALID, Report, rule

MOST_HOURS: Final = 365 * 24
"""The hours of the longest duration: the sum over thousands of HyperJobs is a date before 9999."""
_HOUR: Final = 3600 * 10**9

MALFORMED = rule(
    "V6.malformed",
    INVALID,
    "must be a duration, such as 30s, 10m or 1h30m",
    "a length of time is no duration as Go writes it",
    "write a number and a unit: ns, us, ms, s, m or h",
)
TOO_LONG = rule(
    "V6.too-long",
    INVALID,
    f"must be at most {MOST_HOURS}h, a year",
    "a length of time is longer than any training, and sums of such times leave the calendar",
    "use a shorter one, or leave it out",
)
NEGATIVE = rule(
    "V6.negative",
    INVALID,
    "must not be negative",
    "a length of time is negative",
    "use a positive one",
)


def validate_duration(value: str, path: Path, report: Report) -> None:
    """Validate a duration."""
    try:
        length = nanoseconds(value)
    except ValueError:
        report.add(MALFORMED, path, value)
        return
    if length < 0:
        report.add(NEGATIVE, path, value)
    elif length > MOST_HOURS * _HOUR:
        report.add(TOO_LONG, path, value)
