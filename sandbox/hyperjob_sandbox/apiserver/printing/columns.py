"""Printer columns: what a column is, and the two that every table has."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing.jsonpath import age

NAME_HELP = (
    "Name must be unique within a namespace. Is required when creating resources, although some"
    " resources may allow a client to request the generation of an appropriate name automatically."
    " Name is primarily intended for creation idempotence and configuration definition. Cannot be"
    " updated. More info:"
    " https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
AGE_HELP = (
    "CreationTimestamp is a timestamp representing the server time when this object was created."
    " It is not guaranteed to be set in happens-before order across separate operations. Clients"
    " may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the"
    " system. Read-only. Null for lists. More info:"
    " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)

Cell = Callable[[Object, datetime], Json]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table and how its cell is read from an object."""

    name: str
    type: str
    cell: Cell
    format: str = ""
    description: str = ""
    priority: int = 0


def _name(obj: Object, now: datetime) -> Json:
    del now
    return obj["metadata"].get("name", "")


def _age(obj: Object, now: datetime) -> Json:
    created = obj["metadata"].get("creationTimestamp")
    return age(created, now=now) if created else "<unknown>"


NAME_COLUMN = Column("Name", "string", _name, "name", NAME_HELP)
AGE_COLUMN = Column("Age", "date", _age, "", AGE_HELP)
