"""What the controller makes of values that anybody may have written into an object."""

from datetime import timedelta, timezone
from typing import Any

import pytest

from hyperjob_core.api.wire import (
    decoded,
    integer,
    is_true,
    mapping,
    natural,
    objects,
    rfc3339,
    string,
    string_map,
    strings,
    timestamp,
)

ODD: list[Any] = [None, True, 3, 1.5, "text", [], [1], {}, {"a": 1}]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_value_of_another_type_reads_as_an_empty_one(value: Any) -> None:
    assert mapping(value) == (value if isinstance(value, dict) else {})
    assert string(value) == (value if isinstance(value, str) else "")
    assert integer(value) == (3 if value == 3 and value is not True else None)
    assert objects(value) == []
    assert strings(value) == ()


def test_of_lists_and_maps_what_is_of_the_right_type_is_kept() -> None:
    assert objects([{"a": 1}, None, "x", [{}], {}]) == [{"a": 1}, {}]
    assert strings(["a", "", None, 1, "b"]) == ("a", "b")
    assert string_map({"a": "x", "b": 1, "c": None, "d": ""}) == {"a": "x", "d": ""}


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("", None), ("-1", None), ("²", None)],
)
def test_a_natural_number_is_at_most_18_decimal_digits(text: str, number: int | None) -> None:
    assert natural(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *(opening * count + "1" + closing * count
          for opening, closing in (("[", "]"), ('{"a":', "}"))
          for count in (1_025, 100_000)),
        "[" * 100_000, '{"a":' * 100_000, "", "{", "nothing", "NaN", "Infinity", "1e999",
        "9" * 5_000, "\ud800", '"\\ud800"', "{}{}",
    ],
    ids=lambda text: f"{text[:9]!r} {len(text)}",
)  # fmt: skip
def test_any_other_text_than_json_is_a_value_error_however_deep(text: str) -> None:
    with pytest.raises(ValueError):
        decoded(text)
    if text.isascii():
        with pytest.raises(ValueError):
            decoded(text.encode())


def test_json_of_a_thousand_levels_is_decoded() -> None:
    value = decoded("[" * 1_000 + "]" * 1_000)
    for _ in range(999):
        (value,) = value if isinstance(value, list) else ()
    assert value == []
    assert decoded(b'{"a": [1, 2.5, "x", null, true]}') == {"a": [1, 2.5, "x", None, True]}


@pytest.mark.parametrize("text", [
    "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00",
    "9999-01-01T00:00:01Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z", "soon", "", None, 3,
])  # fmt: skip
def test_a_time_that_no_clock_shows_is_absent(text: object) -> None:
    assert timestamp(text) is None


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"])
def test_a_time_up_to_the_year_9999_can_be_told_in_any_zone(text: str) -> None:
    moment = timestamp(text)
    assert moment is not None
    assert rfc3339(moment) == text
    assert moment.astimezone(timezone(timedelta(hours=-14)))


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, True),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Other", "status": "True"}, "odd", {}]}}, False),
        ({"status": {"conditions": "odd"}}, False),
        (None, False),
    ],
)
def test_a_condition_is_true_only_where_the_status_says_it(found: object, holds: bool) -> None:
    assert is_true(found, "Ready") is holds
