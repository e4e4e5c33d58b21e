"""The forms of names, labels, ports and keys, with Kubernetes' messages.

Each check returns the list of errors, without field paths; empty for a valid value.
"""

import re
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_IS_LABEL: Final = re.compile(_LABEL).fullmatch
_IS_SUBDOMAIN: Final = re.compile(_SUBDOMAIN).fullmatch
_IS_DNS1035: Final = re.compile(_DNS1035).fullmatch
_IS_QUALIFIED: Final = re.compile(_QUALIFIED).fullmatch
_IS_VALUE: Final = re.compile(_VALUE).fullmatch
_IS_RELAXED_ENV: Final = re.compile("[ -<>-~]+").fullmatch
_IS_PORT: Final = re.compile("[-a-z0-9]+").fullmatch
_HAS_LETTER: Final = re.compile("[a-z]").search
_IS_CONFIG_KEY: Final = re.compile(_CONFIG_KEY).fullmatch

_EMPTY: Final = "must be non-empty"
_ALPHANUMERIC_ENDS: Final = "and must start and end with an alphanumeric character"
_QUALIFIED_RULE: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
)
_PORT_RULE: Final = (
    "must contain only alpha-numeric characters"  # codespell:ignore
    " (a-z, 0-9), and hyphens (-)"
)
_RELAXED_ENV_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other"
    " than '='"
)


def dns1123_label(value: str) -> list[str]:
    """Check the name of most namespaced parts: at most 63 of a-z, 0-9 and -."""
    if len(value) <= 63 and _IS_LABEL(value):
        return []
    errors = _at_most(value, 63)
    if not _IS_LABEL(value):
        if _IS_SUBDOMAIN(value):
            errors.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters"
                f" or '-', {_ALPHANUMERIC_ENDS}"
            )
            errors.append(_regex(rule, _LABEL, "my-name", "123-abc"))
    return errors


def dns1123_subdomain(value: str) -> list[str]:
    """Check the name of an object: labels joined by dots, at most 253."""
    if len(value) <= 253 and _IS_SUBDOMAIN(value):
        return []
    errors = _at_most(value, 253)
    if not _IS_SUBDOMAIN(value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
            f" '-' or '.', {_ALPHANUMERIC_ENDS}"
        )
        errors.append(_regex(rule, _SUBDOMAIN, "example.com"))
    return errors


def dns1035_label(value: str) -> list[str]:
    """Check the name of a Service: a DNS label that starts with a letter."""
    errors = _at_most(value, 63)
    if not _IS_DNS1035(value):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start"
            " with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(_regex(rule, _DNS1035, "my-name", "abc-123"))
    return errors


def qualified_name(value: str) -> list[str]:
    """Check a label key, resource name or annotation key: `[prefix/]name`."""
    prefix, slash, name = value.rpartition("/")
    if len(name) <= 63 and _IS_QUALIFIED(name) and (not slash or not dns1123_subdomain(prefix)):
        return []
    errors: list[str] = []
    prefix, slash, name = value.partition("/")
    if not slash:
        name = value
    elif "/" in name:
        return [
            "a qualified name "
            + _regex(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    elif not prefix:
        errors.append(f"prefix part {_EMPTY}")
    else:
        errors.extend(f"prefix part {error}" for error in dns1123_subdomain(prefix))
    if not name:
        errors.append(f"name part {_EMPTY}")
    else:
        errors.extend(f"name part {error}" for error in _at_most(name, 63))
    if not _IS_QUALIFIED(name):
        rule = _regex(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
        errors.append(f"name part {rule}")
    return errors


def label_value(value: str) -> list[str]:
    """Check the value of a label: empty, or at most 63 with alphanumeric ends."""
    if len(value) <= 63 and _IS_VALUE(value):
        return []
    errors = _at_most(value, 63)
    if not _IS_VALUE(value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-',"
            f" '_' or '.', {_ALPHANUMERIC_ENDS}"
        )
        errors.append(_regex(rule, _VALUE, "MyValue", "my_value", "12345"))
    return errors


def port_name(value: str) -> list[str]:
    """Check the name of a port: at most 15 of a-z, 0-9 and -, one letter at least."""
    # Kubernetes counts characters here, and bytes everywhere else.
    errors = ["must be no more than 15 characters"] if len(value) > 15 else []
    if not _IS_PORT(value):
        errors.append(_PORT_RULE)
    if not _HAS_LETTER(value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def relaxed_env_var_name(value: str) -> list[str]:
    """Check the name of an environment variable as containers may have it."""
    if not value:
        return [f"environment variable name {_EMPTY}"]
    return [] if _IS_RELAXED_ENV(value) else [_RELAXED_ENV_RULE]


def config_map_key(value: str) -> list[str]:
    """Check a key of a ConfigMap or Secret."""
    errors = _at_most(value, 253)
    if not _IS_CONFIG_KEY(value):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(_regex(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return errors + _not_a_directory(value)


def _at_most(value: str, length: int) -> list[str]:
    size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return [f"must be no more than {length} bytes"] if size > length else []


def _not_a_directory(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def _regex(rule: str, pattern: str, *examples: str) -> str:
    # The comma before "or" is Kubernetes' own; people search for the whole text.
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
