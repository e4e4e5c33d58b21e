"""What is wrong with the shape of a value, in the words of the API server.

Translates the findings of the compiled schema; finds nothing itself.
"""

from typing import Any, Final

from pydantic_core import ErrorDetails

from hyperjob.api import field
from webhook.validation.place import ROOT, Path
from webhook.validation.report import Refusal
from webhook.validation.rules import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TYPE_INVALID,
    rule,
)
from webhook.validation.rules import TOO_MANY as TOO_MANY_ITEMS
from webhook.validation.schema import INT_OR_STRING, schema_at
from webhook.validation.suggest import did_you_mean

WRONG_TYPE = rule(
    "T1",
    TYPE_INVALID,
    '{path} in body must be of type {expected}: "{actual}"',
    "the value has another type than the API's schema says",
    'write the value as the type named: numbers and true/false bare, texts quoted as "1"',
)
MISSING = rule("T2", REQUIRED, "", "a field that must be there is not there", "add the field")
UNKNOWN = rule(
    "T3",
    FORBIDDEN,
    "unknown field{hint}",
    "the API has no such field; it is often misspelt or indented wrongly",
    "correct the name or the place of the field, or remove it",
)
ENUM = rule(
    "T4",
    NOT_SUPPORTED,
    "supported values: {values}",
    "the value is none of those that the field can have",
    "use one of the values listed; upper and lower case matter",
)
TOO_SMALL = rule(
    "T5",
    INVALID,
    "{path} in body should be greater than or equal to {limit}",
    "the number is below what the field allows",
    "use a larger number",
)
TOO_LARGE = rule(
    "T6",
    INVALID,
    "{path} in body should be less than or equal to {limit}",
    "the number is above what the field allows",
    "use a smaller number",
)
PATTERN = rule(
    "T7",
    INVALID,
    "{path} in body should match '{pattern}'",
    "the text has characters, or an order of them, that the field does not allow",
    "use names of lower case letters, digits and '-' that start and end with a letter or digit",
)
TOO_SHORT = rule(
    "T8",
    INVALID,
    "{path} in body should be at least {limit} chars long",
    "the text is empty or too short",
    "give the field a value, or remove it",
)
TOO_FEW = rule(
    "T9",
    INVALID,
    "{path} in body should have at least {limit} items",
    "the list is empty or too short",
    "add an item",
)
TEXT_TOO_LONG = rule(
    "T10",
    TOO_LONG,
    "may not be more than {limit} bytes",
    "the text is longer than the field allows",
    "shorten it",
)
LIST_TOO_LONG = rule(
    "T11",
    TOO_MANY_ITEMS,
    "must have at most {limit} items",
    "the list is longer than the field allows",
    "remove items, or split the HyperJob",
)
HOPELESS = rule(
    "T12",
    INVALID,
    "{count} fields have a wrong shape; only so much is told about an object",
    "the document is not a HyperJob, or was garbled on its way",
    "check what was sent",
)

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
    """Tell whether the value cannot be looked into, unlike one that is only out of bounds.

    Nobody has looked into a list that is too long.
    """
    return detail["type"] in _EXPECTED or detail["type"] == "too_long"


def is_harmless(detail: ErrorDetails) -> bool:
    """Tell whether the API server would take the value: 3.0 is an integer in JSON."""
    value = detail["input"]
    return detail["type"] == "int_type" and isinstance(value, float) and value.is_integer()


def empty_value(detail: ErrorDetails) -> object:
    """Return an empty value of the type that a list item should have had."""
    expected = _EXPECTED.get(detail["type"], "")
    return {"object": {}, "array": [], "string": ""}.get(expected, 0)


def too_many(count: int) -> Refusal:
    """Return the one error about an object with too many errors to tell."""
    return Refusal(HOPELESS, HOPELESS.at(ROOT, "object", count=count))


def to_refusal(path: Path, detail: ErrorDetails) -> Refusal:
    """Return the API server's error for one finding."""
    value, location = detail["input"], detail["loc"]
    context: dict[str, Any] = detail.get("ctx") or {}
    at = field.Path(str(path))
    match detail["type"]:
        case "missing":
            return Refusal(MISSING, MISSING.at(path))
        case "extra_forbidden":
            return Refusal(UNKNOWN, UNKNOWN.at(path, hint=_nearest_field(location)))
        case "literal_error":
            known = tuple(schema_at(location)["enum"])
            return Refusal(ENUM, ENUM.unsupported(path, value, known))
        case "greater_than_equal":
            return Refusal(TOO_SMALL, TOO_SMALL.at(path, value, path=path, limit=context["ge"]))
        case "less_than_equal":
            return Refusal(TOO_LARGE, TOO_LARGE.at(path, value, path=path, limit=context["le"]))
        case "string_pattern_mismatch":
            pattern = context["pattern"]
            return Refusal(PATTERN, PATTERN.at(path, value, path=path, pattern=pattern))
        case "string_too_short":
            limit = context["min_length"]
            return Refusal(TOO_SHORT, TOO_SHORT.at(path, value, path=path, limit=limit))
        case "string_too_long":
            return Refusal(TEXT_TOO_LONG, field.too_long(at, value, context["max_length"]))
        case "too_short":
            limit = context["min_length"]
            return Refusal(TOO_FEW, TOO_FEW.at(path, len(value), path=path, limit=limit))
        case "too_long":
            error = field.too_many(at, len(value), context["max_length"])
            return Refusal(LIST_TOO_LONG, error)
        case kind:
            actual, expected = type_name(value), _EXPECTED.get(kind, kind)
            text = WRONG_TYPE.text(path=path, expected=expected, actual=actual)
            return Refusal(WRONG_TYPE, field.type_invalid(at, actual, text))


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


def _nearest_field(location: tuple[int | str, ...]) -> str:
    known = schema_at(location[:-1]).get("properties") or {}
    return did_you_mean(str(location[-1]), known)
