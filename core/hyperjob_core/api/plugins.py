"""The table of HyperJob's plugins: their names, their arguments, and their needs.

The webhook validates against it, and the controller's plugins use it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperjob_core.api.arguments import Flags, Kind, values_of


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
