"""JSONPath as printer columns, selectable fields and `kubectl` use it: one action, no templates.

Pure. Missing keys find nothing; what cannot be parsed raises JSONPathError when it is compiled.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import orjson

from hyperjob.text import human_duration
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format, json_type

Step: TypeAlias = Callable[[list[Json]], list[Json]]

_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.]+")
_FIELD = re.compile(r"(?:\\.|[^\s.,\[\]$@{}\\])*", re.DOTALL)
_STRING = re.compile(r""""((?:\\.|[^"\\\n])*)"|'((?:\\.|[^'\\\n])*)'""")


class JSONPathError(ValueError):
    """A path that cannot be parsed, or that does not fit the object it is asked for."""


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A compiled path such as `.status.conditions[?(@.type=="Done")].status`."""

    text: str
    steps: tuple[Step, ...]

    @classmethod
    def compile(cls, text: str) -> "JSONPath":
        """Parse a path without its braces; raise JSONPathError."""
        return cls(text, tuple(_Parser(text).steps()))

    def find(self, obj: Json) -> list[Json]:
        """Return what the path leads to; raise JSONPathError for an index out of bounds."""
        found = [obj]
        for step in self.steps:
            found = step(found)
        return found

    def cell(self, obj: Json, column_type: str, *, now: datetime) -> Json:
        """Return the table cell of an object: the first value, as the column's type prints it."""
        try:
            found = self.find(obj)
        except JSONPathError:
            return None
        if not found:
            return None
        return _text(found[0]) if column_type == "string" else _typed(found[0], column_type, now)


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


class _Parser:
    """Reads a path from left to right into the steps that walk it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> Sequence[Step]:
        steps: list[Step] = []
        while self._at < len(self._text):
            rest = self._text[self._at :]
            if rest.startswith("[?("):
                steps.append(self._filter())
            elif rest.startswith("["):
                steps += self._brackets()
            elif rest.startswith(".."):
                self._at += 2
                steps.append(_recurse)
                if re.match(r"\w", self._text[self._at : self._at + 1]):
                    steps.append(self._field())
            elif rest.startswith("."):
                self._at += 1
                steps.append(self._field())
            elif rest[0] in " @$":
                self._at += 1
            elif found := _STRING.match(rest):
                self._at += found.end()
                steps.append(_constant(_unquote(found[1] if found[1] is not None else found[2])))
            elif found := _NUMBER.match(rest):
                self._at += found.end()
                steps.append(_constant(_number(found[0])))
            elif found := re.match(r"true\b|false\b", rest):
                self._at += found.end()
                steps.append(_constant(found[0] == "true"))
            elif found := re.match(r"\w+", rest):
                raise JSONPathError(f"unrecognized identifier {found[0]}")
            else:
                raise JSONPathError(
                    f"unrecognized character in action: U+{ord(rest[0]):04X} '{rest[0]}'"
                )
        return steps

    def _field(self) -> Step:
        found = _FIELD.match(self._text, self._at)
        assert found is not None  # the pattern also matches nothing
        self._at = found.end()
        name = found[0].replace("\\", "")
        return _wildcard if found[0] == "*" else _field(name)

    def _brackets(self) -> Sequence[Step]:
        end = self._text.find("]", self._at)
        if end < 0:
            raise JSONPathError("unterminated array")
        inner = self._text[self._at + 1 : end]
        self._at = end + 1
        parts = inner.split(",")
        if len(parts) > 1:
            return [_union([_Parser(f"[{part.strip(' ')}]").steps() for part in parts])]
        if quoted := re.fullmatch(r"'([^']*)'", inner):
            return _Parser(f".{quoted[1]}").steps()
        found = _SLICE.fullmatch(":" if inner == "*" else inner)
        if found is None:
            raise JSONPathError(f"invalid array index {inner}")
        return [_slice(*(_bound(part) for part in found.groups()), single=found[2] is None)]

    def _filter(self) -> Step:
        start = self._at = self._at + 3
        quote = ""
        while True:
            if self._at >= len(self._text):
                raise JSONPathError("unterminated filter")
            char = self._text[self._at]
            if quote:
                if char == "\\":
                    self._at += 1
                elif char == quote:
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == ")":
                break
            self._at += 1
        inner = self._text[start : self._at]
        if self._text[self._at : self._at + 2] != ")]":
            raise JSONPathError("unclosed array expect ]")
        self._at += 2
        compared = _COMPARISON.fullmatch(inner)
        if compared is None:
            return _filter(_Parser(inner).steps(), "exists", [])
        left, operator, right = compared.groups()
        if operator not in _OPERATORS:
            raise JSONPathError(f"unrecognized filter operator {operator}")
        return _filter(_Parser(left).steps(), operator, _Parser(right).steps())


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _number(text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError as error:
        raise JSONPathError(f"cannot parse number {text}") from error


def _bound(text: str | None) -> int | None:
    text = (text or "").removeprefix(":")
    return int(text) if text not in ("", "-") else None


def _walk(values: list[Json], steps: Sequence[Step]) -> list[Json]:
    for step in steps:
        values = step(values)
    return values


def _constant(value: Json) -> Step:
    return lambda found: [value for _ in found]


def _field(name: str) -> Step:
    return lambda found: [item[name] for item in found if isinstance(item, dict) and name in item]


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _wildcard(found: list[Json]) -> list[Json]:
    return [child for item in found for child in _children(item)]


def _recurse(found: list[Json]) -> list[Json]:
    result: list[Json] = []
    for item in found:
        if children := _children(item):
            result.append(item)
            result += _recurse(children)
    return result


def _union(parts: Sequence[Sequence[Step]]) -> Step:
    return lambda found: [item for steps in parts for item in _walk(found, steps)]


def _slice(start: int | None, stop: int | None, step: int | None, *, single: bool) -> Step:
    def walk(found: list[Json]) -> list[Json]:
        result: list[Json] = []
        for item in found:
            if item is None:
                continue
            if not isinstance(item, list):
                raise JSONPathError(f"{json_type(item)} is not array or slice")
            result += _cut(item, start, stop, step, single=single)
        return result

    return walk


def _cut(
    items: list[Json], start: int | None, stop: int | None, step: int | None, *, single: bool
) -> list[Json]:
    size = len(items)
    first = start or 0
    if first < 0:
        first += size
    last = size if stop is None else stop
    if single and start is not None:
        last = first + 1
    if last < 0:
        last += size
    if first == last:
        return []
    if not 0 <= first < size:
        raise JSONPathError(f"array index out of bounds: index {first}, length {size}")
    if not 0 <= last <= size:
        raise JSONPathError(f"array index out of bounds: index {last - 1}, length {size}")
    if first > last:
        raise JSONPathError(f"starting index {first} is greater than ending index {last}")
    if step is not None and step <= 0:
        raise JSONPathError("step must be > 0")
    return items[first:last:step]


_OPERATORS: dict[str, Callable[[Json, Json], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _filter(left: Sequence[Step], operator: str, right: Sequence[Step]) -> Step:
    def passes(item: Json) -> bool:
        lefts = _walk([item], left)
        if operator == "exists":
            return bool(lefts)
        rights = _walk([item], right)
        if not lefts or not rights:
            return False
        if len(lefts) > 1 or len(rights) > 1:
            raise JSONPathError("can only compare one element at a time")
        if json_type(lefts[0]) != json_type(rights[0]):
            raise JSONPathError("incompatible types for comparison")
        if json_type(lefts[0]) in ("object", "array", "null"):
            raise JSONPathError("invalid type for comparison")
        return _OPERATORS[operator](lefts[0], rights[0])

    def walk(found: list[Json]) -> list[Json]:
        result: list[Json] = []
        for item in found:
            if not isinstance(item, list):
                raise JSONPathError(
                    f"{go_format(item)} is not array or slice and cannot be filtered"
                )
            result += [element for element in item if passes(element)]
        return result

    return walk
