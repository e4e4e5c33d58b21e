"""Sets of fields as managedFields keep them (FieldsV1), each field as the path that leads to it.

Path elements are their FieldsV1 keys: `f:name` a field, `k:{"name":"a"}` an item of a list map,
`v:"x"` an item of a set, `i:0` a position. Sets are immutable, so that callers share them.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import orjson

from hyperjob_core.api.field import go_quote
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_format

Element: TypeAlias = str
FieldPath: TypeAlias = tuple[Element, ...]
Fields: TypeAlias = frozenset[FieldPath]

EMPTY: Final[Fields] = frozenset()
_ORDER: Final = {"f:": 0, "k:": 1, "v:": 2, "i:": 3}


def key_element(keys: Mapping[str, Json]) -> Element:
    """Return the element of a list map's item."""
    return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def value_element(value: Json) -> Element:
    """Return the element of a set's item."""
    return "v:" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def print_path(path: Iterable[Element]) -> str:
    """Print a path as conflicts name it: `.name`, `[name="a"]`, `[="x"]`, `[0]`."""
    return "".join(map(_print, path))


def _print(element: Element) -> str:
    kind, text = element[:2], element[2:]
    match kind:
        case "f:":
            return f".{text}"
        case "i:":
            return f"[{text}]"
        case "v:":
            return f"[={_show(orjson.loads(text))}]"
    keys = orjson.loads(text)
    return "[" + ",".join(f"{name}={_show(keys[name])}" for name in sorted(keys)) + "]"


def _show(value: Json) -> str:
    return go_quote(value) if isinstance(value, str) else go_format(value)


def read(document: Object) -> Fields:
    """Read a fieldsV1 document; raise ValueError for what is none."""
    return _read(orjson.dumps(document))


@lru_cache(maxsize=2048)
def _read(document: bytes) -> Fields:
    # Thousands of objects are written in the same few shapes.
    found: set[FieldPath] = set()
    _collect(orjson.loads(document), (), found)
    return frozenset(found)


def _collect(document: Object, path: FieldPath, into: set[FieldPath]) -> None:
    for key, below in document.items():
        if key == ".":
            continue
        if key[:2] not in _ORDER or not isinstance(below, dict):
            raise ValueError(f"invalid path element: {key}")
        at = (*path, key)
        if not below or "." in below:
            into.add(at)
        _collect(below, at, into)


@lru_cache(maxsize=2048)
def write(fields: Fields) -> Object:
    """Write the fieldsV1 document of a set; callers share it and must not change it."""
    document: Object = {}
    for path in sorted(fields, key=_sort_key):
        node = document
        for element in path[:-1]:
            child = node.get(element)
            if child is None:
                child = node[element] = {}
            elif not child:
                child["."] = {}  # it came before: a member itself, and not only a way down
            node = child
        node[path[-1]] = {}
    return document


def _sort_key(path: FieldPath) -> list[tuple[int, Element]]:
    return [(_ORDER[element[:2]], element) for element in path]
