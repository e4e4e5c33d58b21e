"""The table of label selectors."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.objects import each, items
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    always,
    code,
    form,
    labels,
    optional,
)
from hyperjob_rules.validation.rules import Report

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS: Final = (*OPERATORS, "Gt", "Lt")

NO_VALUES: Final = row("V8.Selector.values.required")
VALUES: Final = row("V8.Selector.values.forbidden")
ONE_VALUE: Final = row("V8.Selector.values.one")
OPERATOR: Final = row("V8.Selector.operator.enum")


def report_operator(
    requirement: Object, known: tuple[str, ...], path: Path, report: Report
) -> None:
    """Report an operator that Kubernetes does not know, with the most similar one."""
    value = requirement.get("operator") or ""
    hint = report.hints.did_you_mean(value, known)
    report.add(OPERATOR, path.child("operator"), value, hint=hint)


def _operator(_: str, requirement: Object, path: Path, _p: Pod, report: Report) -> None:
    if not has_set_operator(requirement, path, report):
        report_operator(requirement, OPERATORS, path, report)


def has_set_operator(requirement: Object, path: Path, report: Report) -> bool:
    """Check the values of In, NotIn, Exists and DoesNotExist; return whether it is one of these."""
    given = requirement.get("values")
    match requirement.get("operator"):
        case "In" | "NotIn":
            if not given:
                report.add(NO_VALUES, path.child("values"))
        case "Exists" | "DoesNotExist":
            if given:
                report.add(VALUES, path.child("values"))
        case _:
            return False
    return True


SELECTOR: Final = Type(
    "LabelSelector",
    "a label selector",
    optional("matchLabels", labels()),
    optional(
        "matchExpressions",
        items(
            Type(
                "LabelSelectorRequirement",
                "a requirement of a label selector",
                always("operator", code(_operator)),
                always("key", form(formats.qualified_name)),
                optional("values", each(form(formats.label_value))),
            )
        ),
    ),
)


def selected_keys(selector: Object) -> set[str]:
    """Return the label keys in a selector."""
    keys = set(selector.get("matchLabels") or ())
    return keys | {one.get("key") or "" for one in selector.get("matchExpressions") or ()}
