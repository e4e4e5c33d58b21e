"""The numbers of plugin arguments: admission and the plugins read them alike."""

import pytest

from hyperjob_core.api.arguments import number_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("29500", 29500), ("0x1F", 31), ("-0x10", -16), ("+7", 7), ("0", 0), ("0x0F", 15),
        ("029400", None), ("08", None), ("+010", None), ("00", None),
        ("", None), ("x", None), ("1_0", None), ("٣", None), ("9" * 19, None),
    ],
)  # fmt: skip
def test_a_number_is_decimal_or_hexadecimal(text: str, number: int | None) -> None:
    assert number_of(text) == number
