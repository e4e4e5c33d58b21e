"""The conversion of an API type to a structural schema, as a CRD demands it."""

from typing import Final

from pydantic import TypeAdapter

from hyperjob_core.api import corev1
from hyperjob_core.api.meta import Object

_BOUNDS: Final = {
    "int32": {"minimum": -(2**31), "maximum": 2**31 - 1},
    "int64": {"minimum": -(2**63), "maximum": 2**63 - 1},
}


def schema_of(model: type) -> Object:
    """Return the structural schema of a model or a table, with all references resolved."""
    raw = TypeAdapter(model).json_schema(by_alias=True)
    return _convert(raw, raw.get("$defs", {}))


def _convert(node: Object, definitions: Object) -> Object:
    """Return a node of pydantic's schema as a CRD may have it, with all references resolved."""
    node = _resolve(node, definitions)
    schema = {key: value for key, value in node.items() if _is_kept(key, value)}
    if "x-core-type" in schema:
        schema = {"description": node["description"]} | corev1.schema(schema["x-core-type"])
    if "properties" in node:
        schema["properties"] = {
            name: _convert(value, definitions)
            for name, value in node["properties"].items()
            if "description" in value  # others are in memory alone
        }
    if "items" in node:
        schema["items"] = _convert(node["items"], definitions)
    if isinstance(node.get("additionalProperties"), dict) and "x-core-type" not in node:
        schema["additionalProperties"] = _convert(node["additionalProperties"], definitions)
    for bound, value in _BOUNDS.get(schema.get("format", ""), {}).items():
        if schema.get(bound) == value:
            del schema[bound]
    return schema


def _resolve(node: Object, definitions: Object) -> Object:
    """Return the target of a reference or of "this or null", with the keywords beside it."""
    beside = dict(node)
    if "$ref" in beside:
        target = definitions[beside.pop("$ref").rpartition("/")[2]]
    elif "anyOf" in beside:
        (target,) = (option for option in beside.pop("anyOf") if option.get("type") != "null")
    else:
        return node
    return _resolve(target, definitions) | beside


def _is_kept(key: str, value: object) -> bool:
    """Return whether a keyword stays as it is; `_convert` converts those with nodes."""
    match key:
        case "title" | "$defs" | "properties" | "items" | "additionalProperties":
            return False
        case "default":
            # The zero value of a missing field in Go is not a default of the schema.
            return not _is_zero(value)
        case _:
            return True


def _is_zero(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_zero(item) for item in value.values())
    return not value
