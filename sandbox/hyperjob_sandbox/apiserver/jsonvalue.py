"""JSON values as the API server holds them: copy, strict equality, Go's names for their types."""

from typing import Any, Final, TypeAlias

import orjson

Json: TypeAlias = Any
"""A value as it was decoded from JSON: nothing more is known of it at the wire edge."""

_TYPES: Final[dict[type, tuple[str, str]]] = {
    type(None): ("null", "<nil>"),
    bool: ("boolean", "bool"),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    str: ("string", "string"),
    list: ("array", "[]interface {}"),
    dict: ("object", "map[string]interface {}"),
}


def copy(value: Json) -> Json:
    """Return a deep copy; scalars are shared."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    return [copy(item) for item in value] if isinstance(value, list) else value


def equal(a: Json, b: Json) -> bool:
    """Compare as Go does: 1, 1.0 and true are three different values."""
    if a is b or a != b:
        return a is b
    return orjson.dumps(a, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        b, option=orjson.OPT_SORT_KEYS
    )


def at(obj: Json, path: str) -> Json:
    """Read the field at a dotted path, such as `spec.replicas`; None where there is none."""
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def json_type(value: Json) -> str:
    """Name a value's JSON schema type."""
    return _TYPES[type(value)][0]


def go_type(value: Json) -> str:
    """Name a value's type as Go prints it with %T."""
    return _TYPES[type(value)][1]


def go_format(value: Json) -> str:
    """Print a value as Go's %v does; lists and objects as JSON."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return str(value).removesuffix(".0")
        case list() | dict():
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return str(value)
