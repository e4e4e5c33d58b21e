"""JSONPath as printer columns use it: fields, `[0]`, `[*]`, `['name']`, `[?(@.type=="Done")]`.

Pure. Missing keys find nothing; what cannot be parsed raises JSONPathError when it is compiled.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import orjson

from hyperjob.text import human_duration
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format, json_type

Step: TypeAlias = Callable[[Json], list[Json]]

_STEP = re.compile(
    r"\.?(?P<field>(?:\\.|[\w/-])+)"
    r"|\[(?P<index>-?\d+)\]|(?P<all>\[\*\])|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\(@\.(?P<key>[\w.]+)\s*(?P<operator>==|!=)\s*(?P<value>\"[^\"]*\"|'[^']*')\)\]"
)


class JSONPathError(ValueError):
    """A path that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A compiled path such as `.status.conditions[?(@.type=="Done")].status`."""

    text: str
    steps: tuple[Step, ...]

    @classmethod
    def compile(cls, text: str) -> "JSONPath":
        """Parse a path without its braces; raise JSONPathError."""
        if not text.startswith("."):
            raise JSONPathError("must be a simple json path starting with .")
        steps: list[Step] = []
        position = 0
        while position < len(text):
            found = _STEP.match(text, position)
            if found is None:
                raise JSONPathError(f"cannot parse {text[position:]}")
            steps.append(_step(found))
            position = found.end()
        return cls(text, tuple(steps))

    def find(self, obj: Json) -> list[Json]:
        """Return what the path leads to."""
        found = [obj]
        for step in self.steps:
            found = [item for value in found for item in step(value)]
        return found

    def cell(self, obj: Json, column_type: str, *, now: datetime) -> Json:
        """Return the table cell of an object: the first value, as the column's type prints it."""
        found = self.find(obj)
        if not found:
            return None
        return _text(found[0]) if column_type == "string" else _typed(found[0], column_type, now)


def _step(found: re.Match[str]) -> Step:
    name = found["field"] or found["quoted"]
    if name:
        return _field(name.replace("\\", ""))
    if found["index"]:
        return _index(int(found["index"]))
    if found["all"]:
        return lambda value: value if isinstance(value, list) else []
    equal, wanted = found["operator"] == "==", found["value"][1:-1]
    key = JSONPath.compile(f".{found['key']}")
    return lambda value: [
        item
        for item in (value if isinstance(value, list) else ())
        if (have := key.find(item)) and (have[0] == wanted) is equal
    ]


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _index(at: int) -> Step:
    return lambda value: (
        [value[at]] if isinstance(value, list) and -len(value) <= at < len(value) else []
    )


def _text(value: Json) -> str:
    if value is None:
        return "<no value>"
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return go_format(value)


def _typed(value: Json, column_type: str, now: datetime) -> Json:
    kind = json_type(value)
    match column_type:
        case "integer" if kind in ("integer", "number"):
            return int(value)
        case "number" if kind in ("integer", "number"):
            return float(value)
        case "boolean" if kind == "boolean":
            return value
        case "date" if kind == "string":
            return age(value, now=now)
    return None


def age(timestamp: str, *, now: datetime) -> str:
    """Print how long ago an RFC 3339 time was, as tables do."""
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    if then.tzinfo is None:
        return "<invalid>"
    return human_duration((now.astimezone(UTC) - then).total_seconds())
