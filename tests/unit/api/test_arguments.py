"""The numbers of plugin arguments: admission and the plugins read them alike."""

import pytest

from hyperjob_core.api.plugins import is_octal, number_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("29500", 29500), ("0x1F", 31), ("-0x10", -16), ("+7", 7), ("0", 0), ("0x0F", 15),
        ("029400", 29400), ("08", 8), ("+010", 10), ("00", 0),
        ("", None), ("x", None), ("1_0", None), ("٣", None), ("9" * 19, None),
    ],
)  # fmt: skip
def test_a_number_is_decimal_or_hexadecimal(text: str, number: int | None) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    ("text", "octal"),
    [("08080", True), ("+010", True), ("-00", True), ("0", False), ("80", False), ("0x10", False)],
)
def test_go_reads_a_number_with_a_leading_zero_as_octal(text: str, octal: bool) -> None:
    assert is_octal(text) is octal
