"""Spans of time are read and printed as kubectl does."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.client.durations import age, parse_duration
from hyperjob_core.text import human_duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (635, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (11100, "3h5m"),
        (28799, "7h59m"),
        (28860, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (691199, "7d23h"),
        (694800, "8d"),
        (63071999, "729d"),
        (63072000, "2y"),
        (64000000, "2y10d"),
        (252287999, "7y364d"),
        (252374400, "8y"),
    ],
)
def test_an_age_has_two_units_at_most(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_a_time_that_nobody_told_is_unknown() -> None:
    now = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert age("2026-01-01T00:00:00Z", now) == "60s"
    assert age(None, now) == "<unknown>"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5), ("2m", 120), ("1h30m", 5400), ("1.5s", 1.5), ("7", 7), ("0", 0)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 s", "-3s", "s5", "5d", "1h-3m", "٣"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: give for example 30s"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_printed_is_never_more_than_what_passed(seconds: int) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 31536000}
    total, number = 0, ""
    for character in human_duration(seconds):
        if character.isdigit():
            number += character
        else:
            total += int(number) * units[character]
            number = ""
    assert total <= seconds
