"""Amounts of resources behave as Kubernetes' own do: grammar, rounding, text, arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO, Format, Quantity

REGEX = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX = "unable to parse quantity's suffix"
NUMERIC = "unable to parse numeric part of quantity"


@pytest.mark.parametrize(
    ("text", "value", "printed"),
    [
        ("0", "0", "0"),
        ("-0", "0", "0"),
        ("1", "1", "1"),
        ("100m", "0.1", "100m"),
        ("0.1", "0.1", "100m"),
        (".5", "0.5", "500m"),
        ("5.", "5", "5."),
        ("1.5", "1.5", "1500m"),
        ("-1.5", "-1.5", "-1500m"),
        ("1000", "1000", "1k"),
        ("1234", "1234", "1234"),
        ("1000k", "1000000", "1M"),
        ("12e6", "12000000", "12e6"),
        ("1e3", "1000", "1e3"),
        ("1E3", "1000", "1E3"),
        ("1000e3", "1000000", "1e6"),
        ("1E", "1e18", "1E"),
        ("1000E", "1e21", "1e21"),
        ("1e-9", "1e-9", "1e-9"),
        ("5u", "0.000005", "5u"),
        ("1Ki", "1024", "1Ki"),
        ("1024Ki", "1048576", "1Mi"),
        ("1.5Gi", "1610612736", "1536Mi"),
        (".5Mi", "524288", "512Ki"),
        ("0.5Ki", "512", "512"),
        ("0.1Ki", "102.4", "102400m"),
        ("1000Ki", "1024000", "1000Ki"),
        ("4Ti", "4398046511104", "4Ti"),
        ("9223372036854775807", "9223372036854775807", "9223372036854775807"),
        ("12345678901234567890", "12345678901234567890", "12345678901234567890"),
    ],
)
def test_an_amount_is_read_exactly_and_printed_with_the_largest_suffix(
    text: str, value: str, printed: str
) -> None:
    quantity = Quantity.parse(text)
    assert Fraction(quantity.nano, NANO) == Fraction(value)
    assert str(quantity) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [("+1", "+1"), ("1.500", "1.500"), ("007", "007"), ("3Ki", "3Ki"), ("+3Ki", "+3Ki")],
)
def test_text_that_needs_no_other_suffix_is_kept_as_it_was_written(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize("text", ["+", "-", ".", "m", "Gi", "e3"])
def test_a_missing_number_is_zero(text: str) -> None:
    assert str(Quantity.parse(text)) == "0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.9n", "1e-9"),
        ("-0.9n", "-1e-9"),
        ("1.0000000001", "1.000000001"),
        ("1e-30", "1e-9"),
        ("1e-100000", "1e-9"),
        ("0e-100000", "0"),
    ],
)
def test_less_than_a_nano_is_rounded_away_from_zero(text: str, value: str) -> None:
    assert Fraction(Quantity.parse(text).nano, NANO) == Fraction(value)


@pytest.mark.parametrize("text", ["8Ei", "100Ei", "9223372036854775808Ki"])
def test_a_binary_amount_ends_at_the_largest_int64(text: str) -> None:
    assert Quantity.parse(text).nano == (2**63 - 1) * NANO


REFUSED = {
    REGEX: [
        *("", " 1", "1 ", "1 Gi", "1Gib", "1.2.3", "1_000", "1e3.5", "NaN", "Infinity", "abc"),
        *("\uff11", "1\n", "0" * 900 + "e1.5"),
    ],
    SUFFIX: ["1e", "--1", "1K", "1ki", "1mi", "1GG", "1m3"],
    NUMERIC: ["1e1001", "1e" + "9" * 20, "9" * 2000, "9" * 2000 + "Ki", "0" * 2000 + "1"],
}


@pytest.mark.parametrize(
    ("text", "message"), [(text, message) for message in REFUSED for text in REFUSED[message]]
)
def test_what_is_no_amount_is_refused_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("number", "printed"), [(3, "3"), (-3, "-3"), (0.5, "500m"), (2.0, "2"), (1e21, "1e21")]
)
def test_a_number_on_the_wire_is_an_amount(number: float, printed: str) -> None:
    assert Quantity.parse(number).canonical == printed


@pytest.mark.parametrize("value", [True, False, float("nan"), float("inf"), None, [], {}])
def test_another_type_on_the_wire_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        Quantity.parse(value)  # type: ignore[arg-type]  # the wire is not typed


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1", "500m", "1500m"),
        ("1Gi", "1Mi", "1025Mi"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "0", "1Gi"),
        ("1e3", "1", "1001"),
        ("100M", "1Mi", "101048576"),
    ],
)
def test_sums_keep_the_suffix_of_the_first_amount(left: str, right: str, total: str) -> None:
    first, second = Quantity.parse(left), Quantity.parse(right)
    assert str(first + second) == total


def test_sums_beyond_the_largest_suffix_keep_their_value() -> None:
    half = Quantity.parse("7Ei")
    assert (half + half).canonical == "14Ei"
    assert (Quantity.parse("1E") + Quantity.parse("999999E")).canonical == "1e24"


def test_amounts_of_one_size_are_one_value_however_written() -> None:
    assert Quantity.parse("1024Mi") == Quantity.parse("1Gi") == Quantity.parse("1073741824")
    assert len({Quantity.parse("1"), Quantity.parse("1000m")}) == 1
    assert Quantity.parse("1G") < Quantity.parse("1Gi")


nanos = st.one_of(
    st.integers(-(10**30), 10**30),
    st.integers(-(10**12), 10**12).map(lambda n: n * NANO),
    st.builds(lambda n, p: n * 1024**p * NANO, st.integers(-2000, 2000), st.integers(0, 6)),
)
quantities = st.builds(Quantity, nanos, st.sampled_from(Format))


@given(quantities)
def test_printing_and_reading_give_the_amount_back(quantity: Quantity) -> None:
    if quantity.format is Format.BINARY_SI and abs(quantity.nano) > (2**63 - 1) * NANO:
        return  # reading caps these, as Kubernetes does
    assert Quantity.parse(str(quantity)) == quantity


@given(quantities, quantities, quantities)
def test_amounts_add_up_in_any_order(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a < b) == (a.nano < b.nano)


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12))
def test_any_text_is_read_or_refused_with_one_of_three_texts(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except ValueError as error:
        refusal = str(error)
    else:
        assert Quantity.parse(quantity.canonical) == quantity
        return
    assert refusal in {REGEX, SUFFIX, NUMERIC}


def test_an_exponent_may_have_leading_zeros() -> None:
    assert Quantity.parse("1e0000000000003").nano == 1000 * NANO
