"""What a rule sees of a value: times, bytes and numbers by their schema, names as identifiers.

Pure; a schema whose values need no change costs nothing.
"""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from hyperjob.sandbox.apiserver.cel import escape
from hyperjob.sandbox.apiserver.jsonvalue import Json
from hyperjob.sandbox.apiserver.schemanode import Node

View: TypeAlias = Callable[[Json], Json]

_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


def compile_view(node: Node) -> View | None:
    """Return how a value of a schema looks to a rule; None where it is what it is."""
    if node.type == "string":
        return _string_view(node)
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    item = compile_view(node.items) if node.items is not None else None
    rest = compile_view(node.additional) if node.additional is not None else None
    fields = {name: compile_view(child) for name, child in node.properties.items()}
    names = {name: escape(name) for name in node.properties}
    renamed = any(name != identifier for name, identifier in names.items())
    if item is None and rest is None and not renamed and not any(fields.values()):
        return None

    def view(value: Json) -> Json:
        if type(value) is list:
            return [item(entry) for entry in value] if item is not None else value
        if type(value) is not dict:
            return value
        seen: dict[str, Json] = {}
        for key, entry in value.items():
            name = names.get(key, key)
            look = fields.get(key, rest)
            if name is not None:
                seen[name] = entry if look is None else look(entry)
        return seen

    return view


def _string_view(node: Node) -> View | None:
    match (node.raw.get("format") or "").replace("-", ""):
        case "datetime":
            return _timestamp
        case "date":
            return lambda value: _timestamp(f"{value}T00:00:00Z") if value else value
        case "duration":
            return _duration
        case "byte":
            return _bytes
    return None


def _timestamp(value: Json) -> Json:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _duration(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    total = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(value))
    return timedelta(seconds=-total if value.startswith("-") else total)


def _bytes(value: Json) -> Json:
    try:
        return base64.b64decode(value)
    except (TypeError, ValueError, binascii.Error):
        return value
