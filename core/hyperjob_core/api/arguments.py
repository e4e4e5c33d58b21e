"""The parser of plugin arguments, with the rules of Go's flag package.

It serves Volcano's plugins and HyperJob's, and reports no errors.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias


class Kind(Enum):
    """The type of an argument's value."""

    TEXT = "text"
    NUMBER = "number"
    PORT = "port"
    SWITCH = "switch"
    TASK = "task"
    HOST = "host"
    """A host name with placeholders."""


Flags: TypeAlias = Mapping[str, Kind]

ON: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
OFF: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_NUMBER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]{1,15}|[0-9]{1,18})")
_OCTAL: Final = re.compile(r"[+-]?0[0-9]")


class Argument(NamedTuple):
    """One argument: the index of the item with its name, and of the item with its value.

    The name is empty if the item is not an argument. The value is None if there is none.
    """

    name: str
    value: str | None
    text: str
    named_at: int
    value_at: int


def read_arguments(given: Sequence[str], flags: Flags) -> Iterator[Argument]:
    """Yield the arguments in their order; a boolean argument without a value is true."""
    index = 0
    while index < len(given):
        named_at, text = index, given[index]
        index += 1
        bare = text.lstrip("-")
        name, equals, rest = bare.partition("=")
        value: str | None = rest
        value_at = named_at
        if not 1 <= len(text) - len(bare) <= 2 or not name:
            name, value = "", None
        elif not equals and name in flags:
            value = "true"
            if flags[name] is not Kind.SWITCH:
                value_at = index
                value = given[index] if index < len(given) else None
                index += 1
        yield Argument(name, value, text, named_at, value_at)


def number_of(text: str) -> int | None:
    """Return the value of a NUMBER or PORT, decimal or hexadecimal; None for any other text."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text, 16 if "x" in text.lower() else 10)


def is_octal(text: str) -> bool:
    """Return whether Go, in which Volcano reads it, takes a number for an octal one."""
    return _OCTAL.match(text) is not None


def values_of(given: Sequence[str], flags: Flags) -> dict[str, str]:
    """Return the values of the known arguments by name; the last one of a name counts."""
    return {
        argument.name: argument.value
        for argument in read_arguments(given, flags)
        if argument.name in flags and argument.value is not None
    }
