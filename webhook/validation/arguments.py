"""Arguments of plugins, read as Go's flag package reads them.

Volcano logs a mistake in an argument where no user looks, and goes on without all that follow it.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, WARNING, rule
from webhook.validation.suggest import did_you_mean


class Kind(Enum):
    """What the value of an argument is."""

    TEXT = "text"
    NUMBER = "number"
    PORT = "port"
    SWITCH = "switch"
    TASK = "task"


Flags = Mapping[str, Kind]

_FREE: Final = (Kind.TEXT, Kind.TASK)
"""Kinds whose values may be any text, as far as the argument by itself goes."""

NOT_A_FLAG = rule(
    "V14",
    INVALID,
    "is not an argument: write `--name=value`{hint}",
    "an argument of a plugin does not start with '-', so it and all that follow are not read",
    "write each argument as --name=value, one a list item",
)
UNKNOWN = rule(
    "V14",
    INVALID,
    "unknown argument `--{name}` of plugin {plugin}{hint}",
    "a plugin has no such argument; all that follow would not be read",
    "use one of the plugin's arguments, or remove it",
)
NO_VALUE = rule(
    "V14",
    INVALID,
    "needs a value: write `--{name}=value`",
    "an argument of a plugin has no value",
    "write --name=value",
)
NOT_A_NUMBER = rule(
    "V14",
    INVALID,
    "must have a whole number as its value",
    "an argument of a plugin that is a number has another value",
    "write --name=NUMBER",
)
NOT_A_PORT = rule(
    "V14",
    INVALID,
    "must have a port from 1 to 65535 as its value",
    "an argument of a plugin that is a port is out of range",
    "use a number from 1 to 65535",
)
NOT_A_SWITCH = rule(
    "V14",
    INVALID,
    "must have true or false as its value",
    "an argument of a plugin that is on or off has another value",
    "write --name=true or --name=false",
)
IGNORED = rule(
    "V14",
    WARNING,
    "has no effect: plugin {plugin} has no arguments",
    "a plugin that has no arguments is given some",
    "use an empty list",
)

_SWITCHES: Final = frozenset(
    {"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"}
)
_NUMBER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]{1,15}|[0-9]{1,18})")


class Argument(NamedTuple):
    """One argument that was understood, and where it stands."""

    value: str
    plugin: Path
    position: int

    @property
    def path(self) -> Path:
        """The list item that holds the value."""
        return self.plugin.index(self.position)


def validate_arguments(
    plugin: str, given: Sequence[str], flags: Flags, path: Path, report: Report
) -> dict[str, Argument]:
    """Check the arguments of one plugin, and return those that were understood by name."""
    found: dict[str, Argument] = {}
    if given and not flags:
        report.warn(IGNORED, path, plugin=plugin)
        return found
    index = -1
    while (index := index + 1) < len(given):
        text = given[index]
        bare = text.lstrip("-")
        name, equals, value = bare.partition("=")
        if not 1 <= len(text) - len(bare) <= 2 or not name:
            near = did_you_mean(f"--{name}", [f"--{flag}" for flag in flags])
            report.add(NOT_A_FLAG, path.index(index), text, hint=near)
            continue
        kind = flags.get(name)
        if kind is None:
            near = did_you_mean(f"--{name}", [f"--{flag}" for flag in flags])
            report.add(UNKNOWN, path.index(index), text, name=name, plugin=plugin, hint=near)
            continue
        if not equals and kind is Kind.SWITCH:
            value = "true"
        elif not equals:
            if index + 1 == len(given):
                report.add(NO_VALUE, path.index(index), text, name=name)
                continue
            index += 1
            value = given[index]
        argument = Argument(value, path, index)
        if kind in _FREE or _validate_value(kind, argument, text, report):
            found[name] = argument
    return found


def _validate_value(kind: Kind, argument: Argument, text: str, report: Report) -> bool:
    """Check the value of one argument; returns whether it can be used."""
    value = argument.value
    match kind:
        case Kind.SWITCH if value not in _SWITCHES:
            report.add(NOT_A_SWITCH, argument.path, text)
        case Kind.NUMBER | Kind.PORT if not _NUMBER.fullmatch(value):
            report.add(NOT_A_NUMBER, argument.path, text)
        case Kind.PORT if not 1 <= int(value, 0 if "x" in value.lower() else 10) <= 65535:
            report.add(NOT_A_PORT, argument.path, text)
        case _:
            return True
    return False
