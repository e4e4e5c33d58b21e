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


@pytest.mark.parametrize(
    ("check", "value", "errors"),
    [
        (formats.dns1123_label, "my-name", []),
        (formats.dns1123_label, "1", []),
        (formats.dns1123_label, "a" * 63, []),
        (formats.dns1123_label, "a" * 64, ["must be no more than 63 bytes"]),
        (formats.dns1123_label, "A_b", [LABEL]),
        (formats.dns1123_label, "", [LABEL]),
        (formats.dns1123_label, "a\n", [LABEL]),
        (formats.dns1123_label, "-a", [LABEL]),
        (formats.dns1123_label, "a.b", ["must not contain dots"]),
        (formats.dns1123_label, "É" * 40, ["must be no more than 63 bytes", LABEL]),
        (formats.dns1123_subdomain, "example.com", []),
        (formats.dns1123_subdomain, "a" * 253, []),
        (formats.dns1123_subdomain, "a" * 254, ["must be no more than 253 bytes"]),
        (formats.dns1123_subdomain, "Bad_Name", [SUBDOMAIN]),
        (formats.dns1123_subdomain, "a..b", [SUBDOMAIN]),
        (formats.dns1035_label, "abc-123", []),
        (formats.dns1035_label, "123-abc", [DNS1035]),
        (formats.dns1035_label, "a.b", [DNS1035]),
        (formats.dns1035_label, "a" * 64, ["must be no more than 63 bytes"]),
        (formats.qualified_name, "nvidia.com/gpu", []),
        (formats.qualified_name, "MyName", []),
        (formats.qualified_name, "a b", [f"name part {QUALIFIED}"]),
        (formats.qualified_name, "", ["name part must be non-empty", f"name part {QUALIFIED}"]),
        (formats.qualified_name, "/a", ["prefix part must be non-empty"]),
        (formats.qualified_name, "A_/b", [f"prefix part {SUBDOMAIN}"]),
        (
            formats.qualified_name,
            "a/b/c",
            [
                (
                    f"a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/'"
                    " (e.g. 'example.com/MyName')"
                )
            ],
        ),
        (formats.qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
        (formats.label_value, "", []),
        (formats.label_value, "my_value", []),
        (formats.label_value, "a b", [VALUE]),
        (formats.label_value, "-", [VALUE]),
        (formats.label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (formats.port_name, "http-1", []),
        (formats.port_name, "a" * 16, ["must be no more than 15 characters"]),
        (formats.port_name, "80", ["must contain at least one letter (a-z)"]),
        (formats.port_name, "a--b", ["must not contain consecutive hyphens"]),
        (formats.port_name, "a-", ["must not begin or end with a hyphen"]),
        (
            formats.port_name,
            "Ä",
            [
                PORT,
                "must contain at least one letter (a-z)",
            ],
        ),
        (formats.config_map_key, "key.name", []),
        (formats.config_map_key, "a/b", [KEY]),
        (formats.config_map_key, "..", ["must not be '..'"]),
        (formats.config_map_key, "..a", ["must not start with '..'"]),
        (formats.config_map_key, "a" * 254, ["must be no more than 253 bytes"]),
        (formats.relaxed_env_var_name, "1 A", []),
        (formats.relaxed_env_var_name, "", ["environment variable name must be non-empty"]),
        (
            formats.relaxed_env_var_name,
            "A=B",
            [
                (
                    "a valid environment variable name must consist only of printable ASCII"
                    " characters other than '='"
                )
            ],
        ),
    ],
)
def test_a_name_is_accepted_or_refused_in_kubernetes_words(
    check: Check, value: str, errors: list[str]
) -> None:
    assert check(value) == errors


CHECKS: list[Check] = [
    formats.dns1123_label,
    formats.dns1123_subdomain,
    formats.dns1035_label,
    formats.qualified_name,
    formats.label_value,
    formats.port_name,
    formats.relaxed_env_var_name,
    formats.config_map_key,
]


@given(st.sampled_from(CHECKS), st.text())
def test_any_text_gets_an_answer(check: Check, value: str) -> None:
    assert all(isinstance(error, str) and error for error in check(value))


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True))
def test_a_service_name_is_also_every_other_kind_of_name(value: str) -> None:
    assert formats.dns1035_label(value) == []
    assert formats.dns1123_label(value) == []
    assert formats.dns1123_subdomain(value) == []
    assert formats.qualified_name(value) == []
    assert formats.label_value(value) == []
