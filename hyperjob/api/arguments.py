"""Arguments of plugins, read as Go's flag package reads them: Volcano's and our own alike.

Says how a list was understood; judges nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias


class Kind(Enum):
    """What the value of an argument is."""

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


class Argument(NamedTuple):
    """One argument: the item that names it, and the item that has its value.

    The name is empty where the item is no argument at all; the value is None where there is none.
    """

    name: str
    value: str | None
    text: str
    named_at: int
    value_at: int


def read_arguments(given: Sequence[str], flags: Flags) -> Iterator[Argument]:
    """Yield the arguments in their order; a switch without a value is on."""
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


def values_of(given: Sequence[str], flags: Flags) -> dict[str, str]:
    """Return the values of the known arguments by name; the last one of a name counts."""
    return {
        argument.name: argument.value
        for argument in read_arguments(given, flags)
        if argument.name in flags and argument.value is not None
    }
