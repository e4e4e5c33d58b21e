"""The fields of an object of the API as a dataclass: one table gives schema, defaults and reader.

A value that the schema of the CRD would refuse reads as absent, and an object without a required
field as no object.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from inspect import cleandoc
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import rfc3339, timestamp

T = TypeVar("T")
Marks = Mapping[str, Any]
"""What a field allows: its bounds, `values` of a map, and further words of its `schema`."""

INT32: Final[Marks] = {"ge": -(2**31), "le": 2**31 - 1, "schema": {"format": "int32"}}
INT64: Final[Marks] = {"ge": -(2**63), "le": 2**63 - 1, "schema": {"format": "int64"}}
COUNT: Final[Marks] = {**INT32, "ge": 0}
NATURAL: Final[Marks] = {**INT64, "ge": 0}
NATURALS: Final[Marks] = {"values": NATURAL}
"""The values of a map are natural numbers."""

TIME: Final[Marks] = {"schema": {"format": "date-time"}}
"""A time that stays the text that it was; a field of type datetime needs no mark."""

MICRO: Final[Marks] = {"micro": True}
"""A datetime that is written with microseconds."""

ATOMIC: Final[Marks] = {"schema": {"x-kubernetes-list-type": "atomic"}}


def keyed(name: str) -> Marks:
    """Return the marks of a list whose items have a key."""
    return {"schema": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [name]}}


def camel(name: str) -> str:
    """Return the name in JSON of a field."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def described(
    description: str,
    marks: Marks | None = None,
    *,
    default: Any = dataclasses.MISSING,  # noqa: ANN401 - as `dataclasses.field`
    alias: str = "",
    always: bool = False,
) -> Any:  # noqa: ANN401 - as `dataclasses.field`
    """Return a field; without a default it is required.

    `alias` is its name in JSON if that is another one. A field that is empty is written only if it
    is required or `always` written.
    """
    metadata = {"description": description, "always": always, **(marks or {})}
    if alias:
        metadata["alias"] = alias
    if default == {}:
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Table:
    """The base of the tables; a field without a description is in memory alone."""

    __slots__ = ()


def read(table: type[T], raw: object) -> T | None:
    """Read an object; None for any other value, and without a required field."""
    if not isinstance(raw, dict):
        return None
    key: Any = table  # mypy sees no hash of a type
    readers, required = _readers(key)
    given: dict[str, Any] = {}
    for key, value in raw.items():
        known = readers.get(key)
        if known is not None and (found := known[1](value)) is not None:
            given[known[0]] = found
    return table(**given) if required <= given.keys() else None


def read_all(table: type[T], raw: object) -> tuple[T, ...]:
    """Read the objects of a list that have all required fields."""
    if not isinstance(raw, list):
        return ()
    found = [read(table, item) for item in raw]
    return tuple([item for item in found if item is not None])


def write(value: Table, table: type[Table] | None = None) -> Object:
    """Return the object of a value; of its base `table` if that is given."""
    entry: Object = {}
    kind: Any = table or type(value)
    for name, key, shown, omitted in _writers(kind):
        item = getattr(value, name)
        if item not in omitted:
            entry[key] = shown(item)
    return entry


def schema_of(table: type[Any]) -> Object:
    """Return the structural schema of the objects of a table, as a CRD demands it."""
    types, fields = get_type_hints(table), _fields(table)
    found: Object = {
        "description": cleandoc(table.__doc__ or ""),
        "type": "object",
        "properties": {_key(each): _field_schema(types[each.name], each) for each in fields},
    }
    required = [_key(each) for each in fields if _is_required(each)]
    return {**found, "required": required} if required else found


def _field_schema(wanted: Any, each: dataclasses.Field[Any]) -> Object:  # noqa: ANN401 - a type
    made = _schema(wanted, each.metadata) | {"description": each.metadata["description"]}
    has_default = each.default is not dataclasses.MISSING and each.default
    return {**made, "default": each.default} if has_default else made


def _schema(wanted: Any, marks: Marks) -> Object:  # noqa: ANN401 - a type
    """Return the schema of a value by its type, with the bounds that its format has not."""
    wanted = _present(wanted)
    made: Object = {"type": "string"}
    match get_origin(wanted):
        case origin if origin is tuple:
            made = {"type": "array", "items": _schema(get_args(wanted)[0], {})}
        case origin if origin is dict or origin is Mapping:
            values = _schema(get_args(wanted)[1], marks.get("values", {}))
            made = {"type": "object", "additionalProperties": values}
        case _ if dataclasses.is_dataclass(wanted):
            table: Any = wanted
            made = schema_of(table)
        case _ if wanted is datetime:
            made["format"] = "date-time"
        case _ if wanted is bool:
            made = {"type": "boolean"}
        case _ if wanted is int:
            made = {"type": "integer"} | ({"minimum": 0} if marks.get("ge") == 0 else {})
        case _ if issubclass(wanted, StrEnum):
            made["enum"] = [str(one) for one in wanted]
    return {**made, **marks.get("schema", {})}


def _present(wanted: Any) -> Any:  # noqa: ANN401 - a type
    """Return the type of a field that is not absent."""
    if get_origin(wanted) in (UnionType, Union):
        (wanted,) = (each for each in get_args(wanted) if each is not type(None))
    return wanted


@cache
def _readers(
    table: type[Any],
) -> tuple[Mapping[str, tuple[str, Callable[[Any], Any]]], frozenset[str]]:
    """Return name and reader of each field by its name in JSON, and the required fields."""
    types = get_type_hints(table)
    readers = {
        _key(each): (each.name, _reader(types[each.name], each.metadata)) for each in _fields(table)
    }
    return readers, frozenset(each.name for each in _fields(table) if _is_required(each))


@cache
def _writers(
    table: type[Any],
) -> Sequence[tuple[str, str, Callable[[Any], Any], tuple[object, ...]]]:
    """Return name, name in JSON and writer of each field, and the values that are not written."""
    types = get_type_hints(table)
    return [
        (
            each.name,
            _key(each),
            _writer(types[each.name], each.metadata),
            ()
            if each.metadata["always"] or _is_required(each)
            else (None, "", (), {}, *([] if each.default is None else [each.default])),
        )
        for each in _fields(table)
    ]


def _fields(table: type[Any]) -> list[dataclasses.Field[Any]]:
    """Return the fields that an object of the API has."""
    return [each for each in dataclasses.fields(table) if "description" in each.metadata]


def _key(each: dataclasses.Field[Any]) -> str:
    return each.metadata.get("alias") or camel(each.name)


def _is_required(each: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return each.default is missing and each.default_factory is missing


def _reader(wanted: Any, marks: Marks) -> Callable[[Any], Any]:  # noqa: ANN401 - a type
    """Return a reader of one value by its type; it returns None for an unusable one."""
    wanted = _present(wanted)
    match get_origin(wanted):
        case origin if origin is tuple:
            item = _reader(get_args(wanted)[0], {})
            return lambda raw: _list(raw, item)
        case origin if origin is dict or origin is Mapping:
            value = _reader(get_args(wanted)[1], marks.get("values", {}))
            return lambda raw: _map(raw, value)
    if dataclasses.is_dataclass(wanted):
        table: Any = wanted
        return lambda raw: read(table, raw)
    if wanted is datetime:
        return timestamp
    if wanted is bool:
        return lambda raw: raw if isinstance(raw, bool) else None
    if wanted is int:
        low, high = marks.get("ge", -(2**63)), marks.get("le", 2**63 - 1)
        return lambda raw: raw if type(raw) is int and low <= raw <= high else None
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        known = {str(each): each for each in wanted}
        return lambda raw: known.get(raw) if isinstance(raw, str) else None
    return lambda raw: raw if isinstance(raw, str) and raw else None


def _list(raw: object, item: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    if not isinstance(raw, list):
        return None
    found = map(item, raw)
    return tuple(each for each in found if each is not None)


def _map(raw: object, value: Callable[[Any], Any]) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    found = {str(name): value(item) for name, item in raw.items()}
    return {name: item for name, item in found.items() if item is not None}


def _writer(wanted: Any, marks: Marks) -> Callable[[Any], Any]:  # noqa: ANN401 - a type
    """Return a writer of one value in JSON types by its type."""
    wanted = _present(wanted)
    match get_origin(wanted):
        case origin if origin is tuple:
            item = _writer(get_args(wanted)[0], {})
            return lambda found: [item(each) for each in found]
        case origin if origin is dict or origin is Mapping:
            value = _writer(get_args(wanted)[1], {})
            return lambda found: {str(name): value(each) for name, each in found.items()}
    if dataclasses.is_dataclass(wanted):
        return write
    if wanted is datetime:
        return micro_time if "micro" in marks else rfc3339
    return wanted if wanted in (bool, int) else str
