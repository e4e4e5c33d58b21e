"""The rules about the shape of a HyperJob, with the wording of `hyperjob_core.api.shapeerrors`."""

from dataclasses import replace
from typing import Final

from pydantic_core import ErrorDetails

from hyperjob_core.api import shapeerrors as words
from hyperjob_core.api.field import ROOT, Path
from hyperjob_core.api.shapeerrors import schema_at
from hyperjob_core.text import nearest, suggestion
from hyperjob_rules.validation import schema
from hyperjob_rules.validation.rules import Violation, bounded, rule_of
from hyperjob_rules.validation.schema import hyperjob_schema

bounded("T1.wrong-type", form=words.WRONG_TYPE)
bounded("T5.too-small", form=words.TOO_SMALL)
bounded("T6.too-large", form=words.TOO_LARGE)
bounded("T7.pattern", form=words.PATTERN)
bounded("T8.too-short", form=words.TOO_SHORT)
bounded("T9.too-few", form=words.TOO_FEW)

_BROKEN: Final = {
    "missing": "T2.missing",
    "extra_forbidden": "T3.unknown",
    "literal_error": "T4.enum",
    "greater_than_equal": "T5.too-small",
    "less_than_equal": "T6.too-large",
    "string_pattern_mismatch": "T7.pattern",
    "string_too_short": "T8.too-short",
    "string_too_long": "T10.text-too-long",
    "too_short": "T9.too-few",
    "too_long": "T11.list-too-long",
}


def too_many(count: int) -> Violation:
    """Return the only error about an object with too many shape errors."""
    rule = rule_of("T12.hopeless")
    return Violation(rule, rule.at(ROOT, "object", count=count))


def to_refusals(path: Path, detail: ErrorDetails) -> list[Violation]:
    """Return the API server's errors for one finding of the schema, each with its rule."""
    value, location = detail["input"], detail["loc"]
    rule = rule_of(_BROKEN.get(detail["type"], "T1.wrong-type"))
    match detail["type"]:
        case "extra_forbidden":
            near = nearest_field(location)
            found = rule.at(path, hint=suggestion(near))
            remedy = f"write {near}" if near else schema.of_unknown(str(location[-1]))
            return [Violation(rule, replace(found, remedy=remedy))]
        case "literal_error":
            known = tuple(schema_at(hyperjob_schema(), location)["enum"])
            return [Violation(rule, rule.unsupported(path, value, known))]
        case _:
            errors = words.explain(detail, hyperjob_schema())
            node = schema_at(hyperjob_schema(), location)
            remedy = schema.of_type(value, words.expected(detail), node)
            return [Violation(rule, replace(error, remedy=remedy)) for error in errors]


def nearest_field(location: tuple[int | str, ...]) -> str:
    """Return the field of the API that an unknown one resembles; empty if there is none."""
    known = schema_at(hyperjob_schema(), location[:-1]).get("properties") or {}
    return nearest(str(location[-1]), known) or ""
