"""The rules about the shape of a HyperJob, with the wording of `hyperjob_core.api.shapeerrors`."""

from dataclasses import replace
from typing import Final

from pydantic_core import ErrorDetails

from hyperjob_core.api import shapeerrors as words
from hyperjob_core.api.field import ROOT, Path
from hyperjob_core.api.shapeerrors import schema_at
from hyperjob_core.text import nearest, suggestion
from hyperjob_rules.validation import schema
from hyperjob_rules.validation.rules import Rule, Violation, rule
from hyperjob_rules.validation.schema import hyperjob_schema

WRONG_TYPE: Final = rule("T1", form=words.WRONG_TYPE)
MISSING: Final = rule("T2")
UNKNOWN: Final = rule("T3")
ENUM: Final = rule("T4")
TOO_SMALL: Final = rule("T5", form=words.TOO_SMALL)
TOO_LARGE: Final = rule("T6", form=words.TOO_LARGE)
PATTERN: Final = rule("T7", form=words.PATTERN)
TOO_SHORT: Final = rule("T8", form=words.TOO_SHORT)
TOO_FEW: Final = rule("T9", form=words.TOO_FEW)
TEXT_TOO_LONG: Final = rule("T10")
LIST_TOO_LONG: Final = rule("T11")
HOPELESS: Final = rule("T12")

_BROKEN: Final[dict[str, Rule]] = {
    "missing": MISSING,
    "greater_than_equal": TOO_SMALL,
    "less_than_equal": TOO_LARGE,
    "string_pattern_mismatch": PATTERN,
    "string_too_short": TOO_SHORT,
    "string_too_long": TEXT_TOO_LONG,
    "too_short": TOO_FEW,
    "too_long": LIST_TOO_LONG,
}


def too_many(count: int) -> Violation:
    """Return the only error about an object with too many shape errors."""
    return Violation(HOPELESS, HOPELESS.at(ROOT, "object", count=count))


def to_refusals(path: Path, detail: ErrorDetails) -> list[Violation]:
    """Return the API server's errors for one finding of the schema, each with its rule."""
    value, location = detail["input"], detail["loc"]
    match detail["type"]:
        case "extra_forbidden":
            near = nearest_field(location)
            found = UNKNOWN.at(path, hint=suggestion(near))
            remedy = f"write {near}" if near else schema.of_unknown(str(location[-1]))
            return [Violation(UNKNOWN, replace(found, remedy=remedy))]
        case "literal_error":
            known = tuple(schema_at(hyperjob_schema(), location)["enum"])
            return [Violation(ENUM, ENUM.unsupported(path, value, known))]
        case kind:
            broken = _BROKEN.get(kind, WRONG_TYPE)
            errors = words.explain(detail, hyperjob_schema())
            node = schema_at(hyperjob_schema(), location)
            remedy = schema.of_type(value, words.expected(detail), node)
            return [Violation(broken, replace(error, remedy=remedy)) for error in errors]


def nearest_field(location: tuple[int | str, ...]) -> str:
    """Return the field of the API that an unknown one resembles; empty if there is none."""
    known = schema_at(hyperjob_schema(), location[:-1]).get("properties") or {}
    return nearest(str(location[-1]), known) or ""
