"""Validation of plugin arguments, which Volcano parses with Go's flag package.

Volcano writes an error in an argument to a log only, and ignores all arguments after it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.plugins import (
    OFF,
    ON,
    PLACEHOLDERS,
    Flags,
    Kind,
    fill,
    is_octal,
    number_of,
    placeholders_of,
    read_arguments,
)
from hyperjob_core.hints import did_you_mean
from hyperjob_rules.validation.rules import INVALID, WARNING, Report, rule

NOT_A_FLAG = rule(
    "L14.not-a-flag",
    INVALID,
    "is not an argument: write `--name=value`{hint}",
    "an argument of a plugin of HyperJob does not start with '-'",
    "write each argument as --name=value, one a list item",
)
UNKNOWN = rule(
    "L14.unknown-argument",
    INVALID,
    "unknown argument `--{name}` of plugin {plugin}{hint}",
    "a plugin of HyperJob has no such argument",
    "use one of the plugin's arguments, or remove it",
)
NO_FLAG = rule(
    "V14.not-a-flag",
    WARNING,
    "is no argument: Volcano ignores it and all after it; write `--name=value`{hint}",
    "an argument of a plugin of Volcano does not start with '-'",
    "write each argument as --name=value, one a list item",
)
NO_ARGUMENT = rule(
    "V14.unknown-argument",
    WARNING,
    "plugin {plugin} has no argument `--{name}`: Volcano ignores it and all after it{hint}",
    "a plugin of Volcano has no such argument",
    "use one of the plugin's arguments, or remove it",
)
NO_VALUE = rule(
    "V14.no-value",
    INVALID,
    "needs a value: write `--{name}=value`",
    "an argument of a plugin has no value",
    "write --name=value",
)
NOT_A_NUMBER = rule(
    "V14.not-a-number",
    INVALID,
    "must have a whole number without leading zeros as its value",
    "an argument of a plugin that is a number has another value, or an octal number for Volcano",
    "write --name=NUMBER",
)
NOT_A_PORT = rule(
    "V14.not-a-port",
    INVALID,
    "must have a port from 1 to 65535 as its value",
    "an argument of a plugin that is a port is out of range",
    "use a number from 1 to 65535",
)
NOT_A_SWITCH = rule(
    "V14.not-a-switch",
    INVALID,
    "must have true or false as its value",
    "a boolean argument of a plugin has another value",
    "write --name=true or --name=false",
)
NOT_A_HOST = rule(
    "L14",
    INVALID,
    "must be a host name; placeholders: {placeholders}{reason}",
    "the pattern of host names has an unknown placeholder, or gives no DNS name",
    "use a pattern such as {{pod}}.{{service}}.{{namespace}}.svc.cluster.local",
)
IGNORED = rule(
    "V14.ignored",
    WARNING,
    "has no effect: plugin {plugin} has no arguments",
    "a plugin without arguments has some",
    "use an empty list",
)


class GivenArgument(NamedTuple):
    """One parsed argument, and its index."""

    value: str
    plugin: Path
    position: int

    @property
    def path(self) -> Path:
        """The path of the list item with the value."""
        return self.plugin.index(self.position)


def validate_arguments(
    plugin: str,
    given: Sequence[str],
    flags: Flags,
    path: Path,
    report: Report,
    *,
    of_volcano: bool = False,
) -> dict[str, GivenArgument]:
    """Validate the arguments of one plugin; return the parsed ones by name.

    Where Volcano reads the arguments, it accepts a wrong one and ignores those after it.
    """
    found: dict[str, GivenArgument] = {}
    if given and not flags:
        report.warn(IGNORED, path, plugin=plugin)
        return found
    for item in read_arguments(given, flags):
        name, kind = item.name, flags.get(item.name)
        if not name or kind is None:
            wanted = name or item.text.lstrip("-").partition("=")[0]
            near = report.hints.did_you_mean(f"--{wanted}", [f"--{flag}" for flag in flags])
            at = path.index(item.named_at)
            if of_volcano:
                unread = NO_ARGUMENT if name else NO_FLAG
                report.warn(unread, at, name=name, plugin=plugin, hint=near)
                return found
            if name:
                report.add(UNKNOWN, at, item.text, name=name, plugin=plugin, hint=near)
            else:
                report.add(NOT_A_FLAG, at, item.text, hint=near)
        elif item.value is None:
            report.add(NO_VALUE, path.index(item.named_at), item.text, name=name)
        else:
            argument = GivenArgument(item.value, path, item.value_at)
            if _validate_value(kind, argument, item.text, report):
                found[name] = argument
    return found


def _validate_value(kind: Kind, argument: GivenArgument, text: str, report: Report) -> bool:
    """Validate the value of one argument; return whether it is valid."""
    value, number = argument.value, number_of(argument.value)
    match kind:
        case Kind.SWITCH if value not in ON | OFF:
            report.add(NOT_A_SWITCH, argument.path, text)
        case Kind.NUMBER | Kind.PORT if number is None or is_octal(value):
            report.add(NOT_A_NUMBER, argument.path, text)
        case Kind.PORT if not 1 <= (number or 0) <= 65535:
            report.add(NOT_A_PORT, argument.path, text)
        case Kind.HOST if reason := _wrong_with_host(value):
            words = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            report.add(NOT_A_HOST, argument.path, text, placeholders=words, reason=reason)
        case _:
            return True
    return False


def _wrong_with_host(pattern: str) -> str:
    """Return the error of a pattern of host names; empty if there is none."""
    unknown = [name for name in placeholders_of(pattern) if name not in PLACEHOLDERS]
    if unknown:
        return f"; there is no {{{unknown[0]}}}{did_you_mean(unknown[0], PLACEHOLDERS)}"
    messages = formats.dns1123_subdomain(fill(pattern, dict.fromkeys(PLACEHOLDERS, "x")))
    return f"; {messages[0]}" if messages else ""
