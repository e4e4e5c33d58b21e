"""Names, labels, ports and keys are checked as apimachinery checks them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api import formats

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex"
    " used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or"
    " 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or"
    " 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PORT = (
    "must contain only alpha-numeric characters"  # codespell:ignore
    " (a-z, 0-9), and hyphens (-)"
)
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g."
    " 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
    " '[-._a-zA-Z0-9]+')"
)

Check = Callable[[str], list[str]]


LETTER = "must contain at least one letter (a-z)"
MANY_PARTS = (
    f"a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/'"
    " (e.g. 'example.com/MyName')"
)
VARIABLE = (
    "a valid environment variable name must consist only of printable ASCII"
    " characters other than '='"
)


def longest(length: int, unit: str = "bytes", *, of: str = "") -> str:
    return f"{of}must be no more than {length} {unit}"


# check -> what it accepts, and the errors of what it refuses
NAMES: dict[Check, tuple[list[str], dict[str, list[str]]]] = {
    formats.dns1123_label: (
        ["my-name", "1", "a" * 63],
        {
            "a" * 64: [longest(63)],
            **{value: [LABEL] for value in ("A_b", "", "a\n", "-a")},
            "a.b": ["must not contain dots"],
            "É" * 40: [longest(63), LABEL],
        },
    ),
    formats.dns1123_subdomain: (
        ["example.com", "a" * 253],
        {"a" * 254: [longest(253)], "Bad_Name": [SUBDOMAIN], "a..b": [SUBDOMAIN]},
    ),
    formats.dns1035_label: (
        ["abc-123"],
        {"123-abc": [DNS1035], "a.b": [DNS1035], "a" * 64: [longest(63)]},
    ),
    formats.qualified_name: (
        ["nvidia.com/gpu", "MyName"],
        {
            "a b": [f"name part {QUALIFIED}"],
            "": ["name part must be non-empty", f"name part {QUALIFIED}"],
            "/a": ["prefix part must be non-empty"],
            "A_/b": [f"prefix part {SUBDOMAIN}"],
            "a/b/c": [MANY_PARTS],
            "a" * 64: [longest(63, of="name part ")],
        },
    ),
    formats.label_value: (
        ["", "my_value"],
        {"a b": [VALUE], "-": [VALUE], "a" * 64: [longest(63)]},
    ),
    formats.port_name: (
        ["http-1"],
        {
            "a" * 16: [longest(15, "characters")],
            "80": [LETTER],
            "a--b": ["must not contain consecutive hyphens"],
            "a-": ["must not begin or end with a hyphen"],
            "Ä": [PORT, LETTER],
        },
    ),
    formats.config_map_key: (
        ["key.name"],
        {
            "a/b": [KEY],
            "..": ["must not be '..'"],
            "..a": ["must not start with '..'"],
            "a" * 254: [longest(253)],
        },
    ),
    formats.relaxed_env_var_name: (
        ["1 A"],
        {"": ["environment variable name must be non-empty"], "A=B": [VARIABLE]},
    ),
}


@pytest.mark.parametrize("check", NAMES)
def test_a_name_is_accepted_or_refused_in_kubernetes_words(check: Check) -> None:
    accepted, refused = NAMES[check]
    assert [check(value) for value in accepted] == [[]] * len(accepted)
    assert {value: check(value) for value in refused} == refused


@given(st.sampled_from(list(NAMES)), st.text())
def test_any_text_gets_an_answer(check: Check, value: str) -> None:
    assert all(isinstance(error, str) and error for error in check(value))


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True))
def test_a_service_name_is_also_every_other_kind_of_name(value: str) -> None:
    assert formats.dns1035_label(value) == []
    assert formats.dns1123_label(value) == []
    assert formats.dns1123_subdomain(value) == []
    assert formats.qualified_name(value) == []
    assert formats.label_value(value) == []
