"""Lengths of time are read as Go reads them."""

from datetime import timedelta

import pytest

from hyperjob_core.api.duration import doubled, nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-0", 0),
        ("1h30m", 5400 * 10**9),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("1.s", 10**9),
        ("-1m", -60 * 10**9),
        ("+2us", 2000),
        ("2µs2μs", 4000),
        ("0.1ns", 0),
        ("0.3333333333333333333h", 1_199_999_999_999),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_a_length_is_exact(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


REFUSED = [
    *("", "3", "-", "s", ".s", "+.s", "1d", "1 s", "--1s", "1s-1s", "٣s"),
    *("9223372036854775808ns", "1" * 200 + "s", "1m" * 100),
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_go_does_not_take_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is longer than"):
        nanoseconds(text)


@pytest.mark.parametrize(
    ("first", "times", "expected"),
    [
        pytest.param(5, 0, 5, id="not doubled"),
        pytest.param(5, 3, 40, id="doubled"),
        pytest.param(75, 2, 300, id="the most exactly"),
        pytest.param(5, 6, 300, id="at most the most"),
        pytest.param(5, 10**9, 300, id="often"),
        pytest.param(0, 10**9, 0, id="nothing"),
    ],
)
def test_a_wait_doubles_up_to_its_most(first: int, times: int, expected: int) -> None:
    most = timedelta(seconds=300)
    assert doubled(timedelta(seconds=first), times, most) == timedelta(seconds=expected)


def test_a_wait_of_any_length_doubles_without_an_overflow() -> None:
    assert doubled(timedelta.max, 10, timedelta.max) == timedelta.max
