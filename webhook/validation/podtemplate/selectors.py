"""Label selectors."""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check, validate_labels
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, REQUIRED, rule
from webhook.validation.suggest import did_you_mean

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")

NO_VALUES = rule(
    "V8",
    REQUIRED,
    "must be specified when `operator` is 'In' or 'NotIn'",
    "a label selector compares with no values",
    "add values",
)
VALUES = rule(
    "V8",
    FORBIDDEN,
    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    "a label selector that only asks for a key has values",
    "remove the values, or use In",
)
OPERATOR = rule(
    "V8",
    INVALID,
    "not a valid selector operator{hint}",
    "a label selector has an operator that Kubernetes does not know",
    "use In, NotIn, Exists or DoesNotExist",
)


def validate_label_selector(selector: Object, path: Path, report: Report) -> None:
    """Check what a selector matches."""
    validate_labels(selector.get("matchLabels") or {}, path.child("matchLabels"), report)
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        at = path.child("matchExpressions").index(index)
        values = requirement.get("values") or []
        match requirement.get("operator"):
            case "In" | "NotIn":
                if not values:
                    report.add(NO_VALUES, at.child("values"))
            case "Exists" | "DoesNotExist":
                if values:
                    report.add(VALUES, at.child("values"))
            case other:
                hint = did_you_mean(other or "", OPERATORS)
                report.add(OPERATOR, at.child("operator"), other or "", hint=hint)
        check(formats.qualified_name, requirement.get("key") or "", at, report, "key")
        for position, value in enumerate(values):
            check(formats.label_value, value, at, report, "values", position)
