"""The compiler of a structural schema into a validator, and the API server's messages for it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic_core import ErrorDetails, core_schema
from pydantic_core.core_schema import CoreSchema

from hyperjob_core.api import field
from hyperjob_core.api.field import ROOT, FieldError, Path
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
        # One finding for any other type.
        return core_schema.custom_error_schema(
            core_schema.union_schema(
                [core_schema.str_schema(strict=True), core_schema.int_schema(strict=True)]
            ),
            custom_error_type=INT_OR_STRING,
            custom_error_message=INT_OR_STRING,
        )
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


WRONG_TYPE: Final = '{path} in body must be of type {expected}: "{actual}"'
TOO_SMALL: Final = "{path} in body should be greater than or equal to {limit}"
TOO_LARGE: Final = "{path} in body should be less than or equal to {limit}"
PATTERN: Final = "{path} in body should match '{pattern}'"
TOO_SHORT: Final = "{path} in body should be at least {limit} chars long"
TOO_FEW: Final = "{path} in body should have at least {limit} items"
BAD_FORMAT: Final = "bad_format"
"""The type of a finding about a text that does not have the `format` of its schema."""

_TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
}  # fmt: skip
_EXPECTED: Final = {
    "string_type": "string",
    "int_type": "integer",
    "int_from_float": "integer",
    "int_parsing_size": "integer",
    "float_type": "number",
    "bool_type": "boolean",
    "dict_type": "object",
    "list_type": "array",
    "string_unicode": "string",
    INT_OR_STRING: "integer,string",
}


def is_unusable(detail: ErrorDetails) -> bool:
    """Return whether the parts of the value are unchecked, unlike those of a value out of bounds.

    The items of a list that is too long are unchecked.
    """
    return detail["type"] in _EXPECTED or detail["type"] == "too_long"


def expected(detail: ErrorDetails) -> str:
    """Return the type that a value should have had; empty if the finding is about another thing."""
    return _EXPECTED.get(detail["type"], "")


def is_harmless(detail: ErrorDetails) -> bool:
    """Return whether the API server would accept the value: 3.0 is an integer in JSON."""
    value = detail["input"]
    return detail["type"] == "int_type" and isinstance(value, float) and value.is_integer()


def empty_value(detail: ErrorDetails) -> object:
    """Return an empty value of the type that a list item should have had."""
    expected = _EXPECTED.get(detail["type"], "")
    return {"object": {}, "array": [], "string": ""}.get(expected, 0)


def explain(
    detail: ErrorDetails, schema: Object, *, location: tuple[int | str, ...] | None = None
) -> list[FieldError]:
    """Return the API server's errors for one finding of the validator of `schema`.

    `location` is the location in the message, by default the whole one; the path of an error is
    always the whole one. The API server has no error for an unknown field.
    """
    value, whole = detail["input"], detail["loc"]
    at, name = ROOT.below(whole), str(ROOT.below(whole if location is None else location))
    context: dict[str, Any] = detail.get("ctx") or {}
    match detail["type"]:
        case "missing":
            return [field.required(at)]
        case "literal_error":
            return [field.not_supported(at, value, schema_at(schema, whole)["enum"])]
        case "greater_than_equal" | "less_than_equal" as kind:
            return [_out_of_bounds(at, name, value, context, schema_at(schema, whole), kind)]
        case "string_pattern_mismatch":
            return [field.invalid(at, value, PATTERN.format(path=name, pattern=context["pattern"]))]
        case "string_too_short":
            limit = context["min_length"]
            return [field.invalid(at, value, TOO_SHORT.format(path=name, limit=limit))]
        case "string_too_long":
            return [field.too_long(at, value, context["max_length"])]
        case "too_short":
            limit = context["min_length"]
            return [field.invalid(at, len(value), TOO_FEW.format(path=name, limit=limit))]
        case "too_long":
            return [field.too_many(at, len(value), context["max_length"])]
        case "duplicate":
            return [field.duplicate(at, value)]
        case kind if kind == BAD_FORMAT:
            return [_mistyped(at, name, str(value), context["format"])]
        case kind:
            return _wrong_type(at, name, value, _EXPECTED.get(kind, kind), schema_at(schema, whole))


def _out_of_bounds(
    at: Path, name: str, value: object, context: dict[str, Any], node: Object, kind: str
) -> FieldError:
    """Return the error of a bound of the schema, or of the format where it has none."""
    word, key = ("minimum", "ge") if kind == "greater_than_equal" else ("maximum", "le")
    limit = context[key]
    if node.get(word) != limit:
        return _no_place(name, node)
    text = (TOO_SMALL if word == "minimum" else TOO_LARGE).format(path=name, limit=limit)
    return field.invalid(at, value, text)


def _no_place(name: str, node: Object) -> FieldError:
    """Return the error of a number outside the range of its type and format."""
    form = f"with format {node['format']}" if node.get("format") else "(default format)"
    text = f"Checked value must be of type {node.get('type')} {form} in {name}"
    return field.invalid(ROOT, "", text)


def _wrong_type(
    at: Path, name: str, value: object, expected: str, node: Object
) -> list[FieldError]:
    """Return the errors of a value of another type; a number with a fraction has two."""
    if expected == "integer" and isinstance(value, float):
        # The API server compares formats first, where the schema has one.
        return [
            _mistyped(at, name, "float64", node["format"])
            if node.get("format")
            else _mistyped(at, name, "number", expected),
            _no_place(name, node),
        ]
    return [_mistyped(at, name, type_name(value), expected)]


def _mistyped(at: Path, name: str, actual: str, expected: str) -> FieldError:
    text = WRONG_TYPE.format(path=name, expected=expected, actual=actual)
    return field.type_invalid(at, actual, text)


def type_name(value: object) -> str:
    """Return the JSON type of a value, by the name that the API server has for it."""
    if value is None:
        return "null"
    return _TYPE_NAMES.get(type(value), "object")
