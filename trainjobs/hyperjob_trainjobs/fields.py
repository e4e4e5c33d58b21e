"""The decision about each field of a TrainJob and of its runtime: carried over, or refused.

A field that the tables in `fields.md` lack is refused by name: no field is accepted without effect.
The page docs/reference/trainjob.md has these tables.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

from hyperjob_core.api.meta import Object


@dataclass(frozen=True, slots=True)
class Field:
    """The decision about one field."""

    carried: bool
    text: str
    """What becomes of the field, or why a TrainJob with it is refused."""
    accepted: tuple[object, ...] = ()
    """Values of a refused field that mean the same as no value."""


_ROW: Final = re.compile(r"\| `([^`]+)` \| ([^|]+) \| (.+) \|")
_SWITCHES: Final = {"false": False, "true": True}


def tables() -> list[str]:
    """Return the three tables, each with its title."""
    text = resources.files(__package__).joinpath("fields.md").read_text(encoding="utf-8")
    return text.split("\n## ")[1:]


def _read(table: str) -> dict[str, Field]:
    return {path: _field(decision, text) for path, decision, text in _ROW.findall(table)}


def _field(decision: str, text: str) -> Field:
    """Return a decision: `carried over`, `refused`, or `refused, except` some values."""
    if decision == "carried over":
        return Field(carried=True, text=text)
    values = re.findall("`([^`]+)`", decision)
    accepted = (int(each) if each.isdecimal() else _SWITCHES.get(each, each) for each in values)
    return Field(carried=False, text=text, accepted=(None, "", *accepted))


_FIELDS: Final = tuple(map(_read, tables()))
TRAINJOB: Final[Mapping[str, Field]] = _FIELDS[0]
"""The fields below `spec` of a TrainJob; lists have no index in a path."""
RUNTIME: Final[Mapping[str, Field]] = _FIELDS[1]
"""The fields below `spec` of a TrainingRuntime or ClusterTrainingRuntime."""
POD: Final[Mapping[str, Field]] = _FIELDS[2]
"""The refused fields of a pod of a runtime."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A field that cannot be carried over: its path with indexes, and the reason."""

    path: str
    text: str


def misfits(value: Object, table: Mapping[str, Field]) -> Iterator[Misfit]:
    """Yield the fields of an object that a table refuses or lacks."""
    yield from _below(value, table, "", "")


def pod_misfits(spec: Object) -> Iterator[Misfit]:
    """Yield the refused fields of the pods of a runtime."""
    for name, decided in POD.items():
        if spec.get(name) not in decided.accepted:
            yield Misfit(name, decided.text)


def _below(value: object, table: Mapping[str, Field], known: str, shown: str) -> Iterator[Misfit]:
    """Yield the same for the value at a path: `known` without indexes, `shown` with them."""
    decided = table.get(known)
    if decided is not None:
        if not decided.carried and value not in decided.accepted:
            yield Misfit(shown, decided.text)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(item, table, known, f"{shown}[{index}]")
    elif isinstance(value, dict) and (not known or _leads_on(known, table)):
        for name, item in value.items():
            below = f"{known}.{name}" if known else name
            yield from _below(item, table, below, f"{shown}.{name}" if shown else name)
    elif value is not None:
        text = "unexpected value" if _leads_on(known, table) else "HyperJob does not know the field"
        yield Misfit(shown, text)


def _leads_on(known: str, table: Mapping[str, Field]) -> bool:
    return any(path.startswith(f"{known}.") for path in table)
