"""The table of HyperJob's plugins: their names, their arguments, and their needs.

The webhook validates against it, and the controller's plugins use it.

The parser of plugin arguments, with the rules of Go's flag package.

It serves Volcano's plugins and HyperJob's, and reports no errors.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The arguments of a plugin, and its demands on the HyperJob."""

    flags: Flags = field(default_factory=dict)
    knows_world: bool = False
    """It gives pods the names of all others: the number of pods must not change while they run."""
    fixed_world: bool = False
    """Its framework starts only with every pod of the HyperJob."""
    one_world: bool = False
    """All pods of the HyperJob are one world, which no sub-job can leave."""
    needs_hosts: bool = False
    """Its pods look each other up by name: it implies the plugin svc."""


PLUGINS: Final[Mapping[str, Plugin]] = {
    "env": Plugin(knows_world=True),
    "jax": Plugin(
        flags={"port": Kind.PORT},
        knows_world=True,
        fixed_world=True,
        one_world=True,
        needs_hosts=True,
    ),
    "mpi": Plugin(
        flags={"master": Kind.TASK, "worker": Kind.TASK, "port": Kind.PORT},
        knows_world=True,
        fixed_world=True,
        one_world=True,
        needs_hosts=True,
    ),
    "pytorch": Plugin(
        flags={
            "master": Kind.TASK,
            "worker": Kind.TASK,
            "port": Kind.PORT,
            "nproc-per-node": Kind.NUMBER,
            "timeout": Kind.NUMBER,
        },
        knows_world=True,
        one_world=True,
        needs_hosts=True,
    ),
    "svc": Plugin(flags={"name-pattern": Kind.HOST, "export": Kind.SWITCH}, needs_hosts=True),
    "torchft": Plugin(
        flags={
            "lighthouse": Kind.TASK,
            "address": Kind.TEXT,
            "port": Kind.PORT,
            "nproc-per-node": Kind.NUMBER,
            "timeout": Kind.NUMBER,
        },
        needs_hosts=True,
    ),
}

MPI_MASTER: Final = "master"
MPI_WORKER: Final = "worker"

PLACEHOLDERS: Final = ("pod", "service", "namespace", "cluster")
"""The placeholders of a host name; `service` is the sub-job's headless Service."""
NAME_PATTERN: Final = "{pod}.{cluster}.{service}.{namespace}.svc.clusterset.local"
"""The host name of a pod behind an exported headless Service, by the Multi-Cluster Services API."""

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def have_hosts(plugins: Iterable[str]) -> bool:
    """Return whether the pods of a HyperJob get host names that other clusters can resolve."""
    return any(name in PLUGINS and PLUGINS[name].needs_hosts for name in plugins)


def knowing_world(plugins: Iterable[str], *, comes_and_goes: bool = False) -> list[str]:
    """Return the plugins that give every pod the addresses of all others.

    With `comes_and_goes`, for a HyperJob with a quorum, only plugins with one world count.
    """
    return sorted(
        name
        for name in plugins
        if name in PLUGINS
        and (PLUGINS[name].one_world if comes_and_goes else PLUGINS[name].knows_world)
    )


def lighthouse_of(plugins: Mapping[str, Sequence[str]]) -> str:
    """Return the task that runs the lighthouse of torchft; empty if no task does.

    A replicatedJob with only this task does not train.
    """
    given = plugins.get("torchft") or ()
    return values_of(given, PLUGINS["torchft"].flags).get("lighthouse", "")


def placeholders_of(pattern: str) -> tuple[str, ...]:
    """Return the names in braces of a host name."""
    return tuple(_PLACEHOLDER.findall(pattern))


def fill(pattern: str, values: Mapping[str, str]) -> str:
    """Return the host name with the values of its placeholders; unknown ones stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), pattern)
