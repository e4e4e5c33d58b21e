"""Printer columns: what a column is, the two that every table has, those of definitions."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing.jsonpath import JSONPath, age

_NAME_HELP = (
    "Name must be unique within a namespace. Is required when creating resources, although some"
    " resources may allow a client to request the generation of an appropriate name automatically."
    " Name is primarily intended for creation idempotence and configuration definition. Cannot be"
    " updated. More info:"
    " https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table and how its cell is read from an object at a time."""

    name: str
    type: str
    cell: Callable[[Object, datetime], Json]
    format: str = ""
    description: str = ""
    priority: int = 0


def custom_column(declared: Object) -> Column:
    """Build a column from an entry of additionalPrinterColumns."""
    path, kind = declared["jsonPath"], declared["type"]
    compiled = JSONPath.compile(path)
    return Column(
        name=declared["name"],
        type=kind,
        cell=lambda obj, now: compiled.cell(obj, kind, now=now),
        format=declared.get("format", ""),
        description=declared.get("description")
        or f"Custom resource definition column (in JSONPath format): {path}",
        priority=declared.get("priority", 0),
    )


def _age(obj: Object, now: datetime) -> Json:
    created = obj["metadata"].get("creationTimestamp")
    return age(created, now=now) if created else "<unknown>"


NAME_COLUMN = Column(
    "Name", "string", lambda obj, _: obj["metadata"].get("name", ""), "name", _NAME_HELP
)
AGE_COLUMN = Column("Age", "date", _age)
