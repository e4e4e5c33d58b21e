"""Printer columns: what a column is, the two that every table has, those of definitions.

JSONPath is what columns use of it: fields, `[0]`, `[*]`, `[?(@.type=="Done")]`. Missing keys find
nothing; what cannot be parsed raises JSONPathError when it is compiled.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from hyperjob_core.api.meta import Object
from hyperjob_core.text import human_duration
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format

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


_STEP = re.compile(
    r"\.?(?P<field>(?:\\.|[\w/-])+)|\[(?:\*|(?P<index>-?\d{1,9}))\]"
    r"|\[\?\(@\.(?P<key>\w+)\s*==\s*(?P<value>\"[^\"]*\"|'[^']*')\)\]"
)


class JSONPathError(ValueError):
    """A path that cannot be parsed."""


_Step = tuple[str | int, str, str]
"""A field or an index; without one all items of a list, or those whose key (second) is a value."""


def _take(step: _Step, value: Json) -> list[Json]:
    field, key, wanted = step
    if isinstance(field, str) and field:
        return [value[field]] if isinstance(value, dict) and field in value else []
    items = value if isinstance(value, list) else []
    if isinstance(field, int):
        return [items[field]] if -len(items) <= field < len(items) else []
    return [i for i in items if not key or (isinstance(i, dict) and i.get(key) == wanted)]


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A compiled path such as `.status.conditions[?(@.type=="Done")].status`."""

    steps: tuple[_Step, ...]

    @classmethod
    def compile(cls, text: str) -> "JSONPath":
        """Parse a path without its braces; raise JSONPathError."""
        if not text.startswith("."):
            raise JSONPathError("must be a simple json path starting with .")
        steps: list[_Step] = []
        position = 0
        while position < len(text):
            found = _STEP.match(text, position)
            if found is None:
                raise JSONPathError(f"cannot parse {text[position:]}")
            name: str | int = (found["field"] or "").replace("\\", "")
            if found["index"] is not None:
                name = int(found["index"])
            steps.append((name, found["key"] or "", (found["value"] or "")[1:-1]))
            position = found.end()
        return cls(tuple(steps))

    def find(self, obj: Json) -> list[Json]:
        """Return what the path leads to."""
        found = [obj]
        for step in self.steps:
            found = [item for value in found for item in _take(step, value)]
        return found

    def cell(self, obj: Json, column_type: str, *, now: datetime) -> Json:
        """Return the table cell of an object: the first value, as the column's type prints it."""
        found = self.find(obj)
        value: Json = found[0] if found else None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        match column_type:
            case "string" if found:
                return "<no value>" if value is None else go_format(value)
            case "integer" if number:
                return int(value)
            case "number" if number:
                return float(value)
            case "boolean" if isinstance(value, bool):
                return value
            case "date" if isinstance(value, str):
                return age(value, now=now)
        return None


def age(timestamp: str, *, now: datetime) -> str:
    """Print how long ago an RFC 3339 time was, as tables do."""
    try:
        then = datetime.fromisoformat(timestamp)
        return human_duration((now.astimezone(UTC) - then).total_seconds())
    except (ValueError, TypeError):
        return "<invalid>"
