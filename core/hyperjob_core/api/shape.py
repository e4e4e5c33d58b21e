"""The compiler of a structural schema into a pydantic validator of types, required fields, bounds.

The validator checks each field by itself. `hyperjob_core.api.shapeerrors` turns its findings into
the API server's messages. The webhook, `hyperjob lint` and the embedded API server use both.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic_core import core_schema
from pydantic_core.core_schema import CoreSchema

from hyperjob_core.api.meta import Object

INT_OR_STRING: Final = "int_or_string"
INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)

Special: TypeAlias = Callable[[str, Object, Callable[[], CoreSchema]], CoreSchema]
"""A function that returns the validator of a node from its name, the node and the usual one."""


def _usual(name: str, node: Object, make: Callable[[], CoreSchema]) -> CoreSchema:
    del name, node
    return make()


def compile_schema(node: Object, *, special: Special = _usual, name: str = "") -> CoreSchema:
    """Return the validator of a structural schema; it reports unknown fields.

    `special` may wrap or replace the validator of any node. The validator ignores `allOf`, `anyOf`,
    `oneOf` and `not`.
    """
    return special(name, node, lambda: _compile(node, special))


def schema_at(schema: Object, location: Sequence[int | str]) -> Object:
    """Return the schema of the value at a location; empty if the schema has none."""
    node: Any = schema
    for step in location:
        if isinstance(step, int):
            node = node.get("items") or {}
        else:
            below = node.get("properties", {}).get(step)
            node = node.get("additionalProperties") or {} if below is None else below
        if not isinstance(node, dict):
            return {}
    found: Object = node
    return found


def _compile(node: Object, special: Special) -> CoreSchema:
    """Return the validator of a node, whether null is allowed included."""
    if node.get("x-kubernetes-int-or-string"):
        return _int_or_string()
    made = _typed(node, special)
    # A null where there is a default means the default, as it does for the API server.
    nullable = node.get("nullable") or "default" in node
    return core_schema.nullable_schema(made) if nullable else made


def _typed(node: Object, special: Special) -> CoreSchema:
    """Return the validator of a node by its type; a node without a type allows anything."""
    match node.get("type"):
        case "object":
            return _object(node, special)
        case "array":
            return core_schema.list_schema(
                compile_schema(node.get("items") or {}, special=special),
                min_length=node.get("minItems"),
                max_length=node.get("maxItems"),
            )
        case "string":
            return _string(node)
        case "integer":
            return _integer(node)
        case "number":
            return core_schema.float_schema(
                strict=True, ge=node.get("minimum"), le=node.get("maximum")
            )
        case "boolean":
            return core_schema.bool_schema(strict=True)
        case _:
            return core_schema.any_schema()


def _object(node: Object, special: Special) -> CoreSchema:
    """Return the validator of a map, or of an object with its known and required fields."""
    values = node.get("additionalProperties")
    properties: Mapping[str, Object] = node.get("properties") or {}
    open_ended = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    if not properties and (values or open_ended):
        below = compile_schema(values, special=special) if isinstance(values, dict) else None
        return core_schema.dict_schema(
            core_schema.str_schema(strict=True), below, max_length=node.get("maxProperties")
        )
    required = set(node.get("required") or ())
    fields = {
        name: core_schema.typed_dict_field(
            compile_schema(child, special=special, name=name),
            required=name in required and "default" not in child,
        )
        for name, child in properties.items()
    }
    return core_schema.typed_dict_schema(fields, extra_behavior="allow" if open_ended else "forbid")


def _string(node: Object) -> CoreSchema:
    """Return the validator of a text: one of an enum, or with a length and a pattern."""
    if "enum" in node:
        # A type error is distinct from a value outside the set.
        known = core_schema.literal_schema(node["enum"])
        return core_schema.chain_schema([core_schema.str_schema(strict=True), known])
    return core_schema.str_schema(
        strict=True,
        min_length=node.get("minLength"),
        max_length=node.get("maxLength"),
        pattern=node.get("pattern"),
    )


def _integer(node: Object) -> CoreSchema:
    """Return the validator of an integer within its format and its bounds."""
    low, high = INT32 if node.get("format") == "int32" else INT64
    return core_schema.int_schema(
        strict=True,
        ge=max(low, node.get("minimum", low)),
        le=min(high, node.get("maximum", high)),
    )


def _int_or_string() -> CoreSchema:
    """Return the validator of an IntOrString, with one finding for any other type."""
    return core_schema.custom_error_schema(
        core_schema.union_schema(
            [core_schema.str_schema(strict=True), core_schema.int_schema(strict=True)]
        ),
        custom_error_type=INT_OR_STRING,
        custom_error_message=INT_OR_STRING,
    )
