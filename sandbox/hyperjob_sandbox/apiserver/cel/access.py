"""How expressions reach into values by their schema: names, types of leaves, what is declared.

Pure. Without a schema everything is as it was decoded.
"""

import base64
import binascii
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from hyperjob_sandbox.apiserver.cel.functions import CelError, duration, timestamp
from hyperjob_sandbox.apiserver.cel.syntax import RESERVED
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.schema.schemanode import Node

Reader: TypeAlias = Callable[[Json], Json]

UNDEFINED: Final = "undefined"
_ESCAPED: Final = re.compile(r"__(underscores|dot|dash|slash|[a-z]+)__")
_SPECIAL: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_KEYWORDS: Final = RESERVED | {"true", "false", "null", "in"}
_META_FIELDS: Final = ("apiVersion", "kind", "metadata")
_METADATA: Final = Node.build(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    }
)


@lru_cache(maxsize=4096)
def unescape(name: str) -> str:
    """Return the field that an identifier stands for: names that CEL cannot spell are escaped."""
    if "__" not in name:
        return name
    whole = _ESCAPED.fullmatch(name)
    if whole and whole[1] in _KEYWORDS:
        return whole[1]
    return _ESCAPED.sub(lambda found: _SPECIAL.get(found[1], found[0]), name)


def field_node(schema: Node | None, name: str) -> Node | str | None:
    """Return the schema of a field, None where it may be anything, UNDEFINED where it is not."""
    if schema is None:
        return None
    if schema.embedded and name in _META_FIELDS:
        return _METADATA if name == "metadata" else schema.properties.get(name)
    found = schema.field(name)
    if found is not None:
        return found
    free = schema.preserve or schema.any_property or schema.type != "object"
    return None if free else UNDEFINED


def item_node(schema: Node | None) -> Node | None:
    """Return the schema of a list's items or a map's values."""
    if schema is None:
        return None
    return schema.items if schema.items is not None else schema.additional


def reader(schema: Node | None) -> Reader | None:
    """Return how a value is read by its schema; None where it is what it is."""
    if schema is None:
        return None
    leaf = _leaf(schema)
    if leaf is not None:
        return leaf
    below = _leaf(schema.items) if schema.items is not None else None
    if below is not None:
        return lambda value: [below(item) for item in value] if type(value) is list else value
    values = _leaf(schema.additional) if schema.additional is not None else None
    if values is not None:
        return lambda value: (
            {key: values(item) for key, item in value.items()} if type(value) is dict else value
        )
    return None


def _leaf(schema: Node) -> Reader | None:
    if schema.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if schema.type != "string":
        return None
    match (schema.raw.get("format") or "").replace("-", ""):
        case "datetime":
            return _lenient(timestamp)
        case "date":
            return _lenient(lambda value: timestamp(f"{value}T00:00:00Z"))
        case "duration":
            return _lenient(duration)
        case "byte":
            return _bytes
    return None


def _lenient(read: Reader) -> Reader:
    def lenient(value: Json) -> Json:
        try:
            return read(value)
        except CelError:
            return value

    return lenient


def _bytes(value: Json) -> Json:
    try:
        return base64.b64decode(value)
    except (TypeError, ValueError, binascii.Error):
        return value
