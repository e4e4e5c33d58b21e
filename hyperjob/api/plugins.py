"""The plugins of a HyperJob: their names, their arguments, and what each one needs.

The one table that admission checks against and the controller acts on. It must never hold what a
plugin does.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperjob.api.arguments import Flags, Kind, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What there is to know of a plugin before it acts."""

    flags: Flags = field(default_factory=dict)
    knows_world: bool = False
    """It gives pods the names of all others, so the number of pods may not change under them."""
    fixed_world: bool = False
    """Its framework starts only when every pod of the HyperJob is there."""
    one_world: bool = False
    """All pods of the HyperJob are one world, which no sub-job can leave."""
    needs_hosts: bool = False
    """Its pods look each other up by name, so it brings the plugin svc."""


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
"""What a host name may be made of: `service` is the sub-job's headless Service."""
NAME_PATTERN: Final = "{pod}.{cluster}.{service}.{namespace}.svc.clusterset.local"
"""The name that the Multi-Cluster Services API gives a pod behind an exported headless Service."""

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def have_hosts(plugins: Iterable[str]) -> bool:
    """Return whether the pods of a HyperJob get names that other clusters can look up."""
    return any(name in PLUGINS and PLUGINS[name].needs_hosts for name in plugins)


def knowing_world(plugins: Iterable[str], *, comes_and_goes: bool = False) -> list[str]:
    """Return the plugins that give every pod the addresses of all others.

    Where sub-jobs come and go, as with a quorum, only those that make one world of all count.
    """
    return sorted(
        name
        for name in plugins
        if name in PLUGINS
        and (PLUGINS[name].one_world if comes_and_goes else PLUGINS[name].knows_world)
    )


def lighthouse_of(plugins: Mapping[str, Sequence[str]]) -> str:
    """Return the task that runs the lighthouse of torchft; empty where none of the HyperJob does.

    A replicatedJob that has only this task does not train.
    """
    given = plugins.get("torchft") or ()
    return values_of(given, PLUGINS["torchft"].flags).get("lighthouse", "")


def placeholders_of(pattern: str) -> tuple[str, ...]:
    """Return the names in braces of a host name."""
    return tuple(_PLACEHOLDER.findall(pattern))


def fill(pattern: str, values: Mapping[str, str]) -> str:
    """Return the host name with its placeholders filled in; unknown ones stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), pattern)
