"""The API server's messages for the findings of a validator from `hyperjob_core.api.shape`."""

from typing import Any, Final

from pydantic_core import ErrorDetails

from hyperjob_core.api import field
from hyperjob_core.api.field import ROOT, FieldError, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.shape import INT_OR_STRING, schema_at

WRONG_TYPE: Final = '{path} in body must be of type {expected}: "{actual}"'
TOO_SMALL: Final = "{path} in body should be greater than or equal to {limit}"
TOO_LARGE: Final = "{path} in body should be less than or equal to {limit}"
PATTERN: Final = "{path} in body should match '{pattern}'"
TOO_SHORT: Final = "{path} in body should be at least {limit} chars long"
TOO_FEW: Final = "{path} in body should have at least {limit} items"
BAD_FORMAT: Final = "bad_format"
"""The type of a finding about a text that does not have the `format` of its schema."""

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
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
