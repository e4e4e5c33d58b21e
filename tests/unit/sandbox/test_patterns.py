"""Go's regular expressions in Python's terms, and the string formats that schemas may name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.jsonvalue import copy, equal, go_float, go_format
from hyperjob_sandbox.apiserver.schema.goregexp import compile_go
from hyperjob_sandbox.apiserver.schema.stringformats import checked_format, string_format

MATCHES = [
    ("^abc$", "abc", True),
    ("^abc$", "abc\n", False),
    ("(?m)^b$", "a\nb\nc", True),
    ("a$|b", "xb", True),
    (r"\z", "a", True),
    (r"^\d+$", "٣", False),
    (r"^\w+$", "é", False),
    ("(?i)^ABC$", "abc", True),
    ("[[:digit:]]+", "a1", True),
    ("^[[:alpha:]_]+$", "ab_", True),
    (r"\Qa.b\E", "a.b", True),
    (r"\Qa.b\E", "axb", False),
    ("[$]", "$", True),
    ("[]a]", "]", True),
    ("[^]]", "]", False),
    ("[a[]", "[", True),
    ("(?P<n>a)b", "ab", True),
    (r"\$", "$", True),
    (r"[\]$]x", "]x", True),
]


@pytest.mark.parametrize(("pattern", "text", "found"), MATCHES)
def test_a_go_pattern_matches_as_in_go(pattern, text, found):
    assert (compile_go(pattern).search(text) is not None) is found


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*a", "(?=a)", "(?!a)", "(?<=a)", r"\p{Greek}", r"\Z", "[[:nope:]]"]
)
def test_what_go_or_python_cannot_read_is_refused(pattern):
    with pytest.raises(ValueError):
        compile_go(pattern)


@given(st.text(max_size=12))
def test_any_pattern_compiles_or_is_refused(pattern):
    try:
        compiled = compile_go(pattern)
    except ValueError as error:
        assert str(error)  # noqa: PT017
        return
    assert isinstance(compiled, re.Pattern)


FORMATS = {
    "date-time": (["2026-01-01T00:00:00Z", "2026-01-01t00:00:00.5+01:00"], ["2026-01-01", "x"]),
    "date": (["2026-02-28"], ["2026-02-30", "2026-2-1", "20260228"]),
    "duration": (["1h30m", "0", "22 ns", "3 days"], ["1", "soon", ""]),
    "byte": (["aGk=", "", "aG\nk="], ["%", "a"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
    "uuid4": (["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
    "ipv4": (["10.0.0.1"], ["10.0.0", "::1", "010.0.0.1"]),
    "ipv6": (["::1", "fe80::1"], ["10.0.0.1", "::g", "fe80::1%eth0"]),
    "cidr": (["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0"]),
    "mac": (["00:00:5e:00:53:01", "0000.5e00.5301"], ["00:00:5e:00:53", "00:00:5e:00:53-01"]),
    "hostname": (["example.com", "a"], ["-a", "a..b", ""]),
    "uri": (["https://example.com/a", "/a"], ["a b", "", "example"]),
    "email": (["a@example.com", "A <a@example.com>"], ["a", ""]),
    "isbn10": (["0321751043"], ["0321751044"]),
    "isbn13": (["978-0321751041"], ["978-0321751042"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111111111111112", "1"]),
    "ssn": (["111-22-3333"], ["1"]),
    "hexcolor": (["#FFF", "a1b2c3"], ["#FFFF"]),
    "rgbcolor": (["rgb(1, 2, 255)"], ["rgb(1,2,256)", "rgb(1,2)"]),
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["507f"]),
    "password": (["anything"], []),
    "k8s-short-name": (["a-b"], ["A", "a.b", "-a"]),
    "k8s-long-name": (["a-b.c"], ["A", "-a"]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_tells_sound_texts_from_others(name):
    check = string_format(name)
    assert check is not None
    good, bad = FORMATS[name]
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


@given(st.sampled_from(sorted(FORMATS)), st.text(max_size=20))
def test_a_format_answers_for_any_text(name, text):
    check = string_format(name)
    assert check is not None
    assert check(text) in (True, False)


@pytest.mark.parametrize(
    ("name", "types", "checked"),
    [
        ("date-time", ("string",), "date-time"),
        ("quantity", ("string",), ""),
        ("int32", ("integer",), "int32"),
        ("int16", ("integer",), ""),
        ("double", ("number",), "double"),
        ("int32", ("number",), ""),
        ("date", ("object",), ""),
        ("date", ("integer", "string"), ""),
    ],
)
def test_a_format_counts_only_for_its_type(name, types, checked):
    assert checked_format(name, types) == checked


FLOATS = {
    0.0: "0",
    1.0: "1",
    2.5: "2.5",
    1e20: "100000000000000000000",
    1e21: "1e+21",
    1.5e-5: "1.5e-05",
    1e-4: "0.0001",
    float("inf"): "+Inf",
}


@pytest.mark.parametrize(("value", "text"), FLOATS.items())
def test_a_float_prints_as_in_go(value, text):
    assert go_float(value) == text


def test_values_print_as_in_go():
    assert go_float(-0.0) == "-0"
    assert go_format({"b": [1, "x", None], "a": True}) == "map[a:true b:[1 x <nil>]]"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([2**70], [2**70], True),
        (None, False, False),
    ],
)
def test_equality_is_strict(a, b, same):
    assert equal(a, b) is same
    assert equal(b, a) is same


def test_a_copy_shares_no_container():
    value = {"a": [{"b": 1}]}
    copied = copy(value)
    assert copied == value
    assert copied["a"] is not value["a"]
    assert copied["a"][0] is not value["a"][0]
