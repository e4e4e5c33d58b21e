"""Lists that are sets or maps: nothing in them may be there twice.

Pure. Compiled once; schemas without such lists cost nothing.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import orjson

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Uniqueness: TypeAlias = Callable[[Json, Path], Iterator[FieldError]]


def compile_uniqueness(node: Node) -> Uniqueness | None:
    """Return the check of a schema's sets and maps; None where there are none."""
    fields = {
        name: below
        for name, child in node.properties.items()
        if (below := compile_uniqueness(child)) is not None
    }
    rest = compile_uniqueness(node.additional) if node.additional is not None else None
    item = compile_uniqueness(node.items) if node.items is not None else None
    unique = node.list_type if node.list_type != "atomic" else ""
    if not fields and rest is None and item is None and not unique:
        return None
    keys = node.list_map_keys

    def check(value: Json, path: Path) -> Iterator[FieldError]:
        if type(value) is list:
            if unique == "set":
                yield from _duplicates(value, value, path)
            elif unique == "map":
                yield from _map_duplicates(value, keys, path)
            if item is not None:
                for i, entry in enumerate(value):
                    yield from item(entry, path.index(i))
        elif type(value) is dict:
            for key, entry in value.items():
                if rest is not None and key not in node.properties:
                    yield from rest(entry, path.key(key))
                elif key in fields:
                    yield from fields[key](entry, path.child(key))

    return check


def _identity(value: Json) -> tuple[type, Json]:
    if isinstance(value, dict | list):
        return (dict, orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    return (type(value), value)


def _duplicates(values: list[Json], shown: list[Json], path: Path) -> Iterator[FieldError]:
    """Report the second appearance of each value; the third and later ones say nothing new."""
    if len(values) < 2:
        return
    seen: dict[tuple[type, Json], int] = {}
    for i, value in enumerate(values):
        key = _identity(value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield field.duplicate(path.index(i), shown[i])


def _map_duplicates(items: list[Json], keys: tuple[str, ...], path: Path) -> Iterator[FieldError]:
    for i, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            detail = "must be an object for an array of list-type map"
            yield field.invalid(path.index(i), item, detail)
            return
    found = [{key: item[key] for key in keys if key in item} if item else {} for item in items]
    yield from _duplicates(found, found, path)
