"""Validation of durations as Go writes them, such as 1h30m."""

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.field import Path
from hyperjob_rules.validation.rules import INVALID, Report, rule

MALFORMED = rule(
    "V6.malformed",
    INVALID,
    "must be a duration, such as 30s, 10m or 1h30m",
    "a length of time is no duration as Go writes it",
    "write a number and a unit: ns, us, ms, s, m or h",
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
