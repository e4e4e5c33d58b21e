"""JSON values as the API server holds them: copy, strict equality, Go's names for their types.

Never changes a value it is given.
"""

from typing import Any, TypeAlias, TypeVar

import orjson

Json: TypeAlias = Any
"""A value as it was decoded from JSON: nothing more is known of it at the wire edge."""

V = TypeVar("V")


def copy(value: V) -> V:
    """Return a deep copy; scalars are shared."""
    result: V = _copy(value)
    return result


def _copy(value: Json) -> Json:
    kind = type(value)
    if kind is dict:
        return {key: _copy(item) for key, item in value.items()}
    if kind is list:
        return [_copy(item) for item in value]
    return value


def equal(a: Json, b: Json) -> bool:
    """Compare as Go does: 1, 1.0 and true are three different values."""
    if a is b:
        return True
    if a != b:
        return False
    # Equal texts settle it at C's speed; other orders of keys and huge numbers take the long way.
    try:
        if orjson.dumps(a) == orjson.dumps(b):
            return True
    except TypeError:
        pass
    return _same_types(a, b)


def _same_types(a: Json, b: Json) -> bool:
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is dict:
        return all(_same_types(item, b[key]) for key, item in a.items())
    if kind is list:
        return all(map(_same_types, a, b))
    return True


def json_type(value: Json) -> str:
    """Name a value's JSON schema type."""
    if value is None:
        return "null"
    return _JSON_TYPES.get(type(value), "object")


_JSON_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def go_type(value: Json) -> str:
    """Name a value's type as Go prints it with %T."""
    if value is None:
        return "<nil>"
    return _GO_TYPES.get(type(value), "map[string]interface {}")


_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def go_format(value: Json) -> str:
    """Print a value as Go's %v does."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    if isinstance(value, list):
        return "[" + " ".join(map(go_format, value)) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{go_format(value[k])}" for k in sorted(value)) + "]"
    return str(value)
