"""Affinity: rules about nodes, and about other pods."""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate.selectors import validate_label_selector
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, REQUIRED, rule
from webhook.validation.suggest import did_you_mean

REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")

NO_TERMS = rule(
    "V8",
    REQUIRED,
    "must have at least one node selector term",
    "a required node affinity has no terms, which no node matches",
    "add a term, or remove the affinity",
)
NO_VALUES = rule(
    "V8",
    REQUIRED,
    "must be specified when `operator` is 'In' or 'NotIn'",
    "a selector compares with no values",
    "add values",
)
VALUES = rule(
    "V8",
    FORBIDDEN,
    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    "a selector that only asks for a key has values",
    "remove the values, or use In",
)
ONE_VALUE = rule(
    "V8",
    REQUIRED,
    "must be specified single value when `operator` is 'Lt' or 'Gt'",
    "a selector compares numbers with none or several",
    "give one value",
)
OPERATOR = rule(
    "V8",
    INVALID,
    "not a valid selector operator{hint}",
    "a selector has an operator that Kubernetes does not know",
    "use In, NotIn, Exists, DoesNotExist; Gt and Lt for nodes",
)
FIELD_KEY = rule(
    "V8",
    INVALID,
    "not a valid field selector key",
    "a node is selected by a field other than its name",
    "use metadata.name, or matchExpressions for labels",
)
FIELD_VALUES = rule(
    "V8",
    REQUIRED,
    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    "a node is selected by none or several names",
    "give one name",
)
WEIGHT = rule(
    "V8",
    INVALID,
    "must be in the range 1-100",
    "the weight of a preference is out of range",
    "use a number from 1 to 100",
)
TOPOLOGY_KEY = rule(
    "V8",
    REQUIRED,
    "can not be empty",
    "a rule about other pods does not say how near they are meant",
    "add topologyKey, such as kubernetes.io/hostname",
)
NO_SELECTOR = rule(
    "V8",
    FORBIDDEN,
    "must not be specified when labelSelector is not set",
    "label keys are to be matched and no labels are selected",
    "add labelSelector",
)
BOTH_SELECTOR = rule(
    "V8",
    INVALID,
    "exists in both matchLabelKeys and labelSelector",
    "a label is matched twice",
    "remove it from one of the two",
)
BOTH_KEYS = rule(
    "V8",
    INVALID,
    "exists in both matchLabelKeys and mismatchLabelKeys",
    "a label shall match and not match",
    "remove it from one of the two",
)


def validate_affinity(spec: Object, path: Path, report: Report) -> None:
    """Check where pods want to be, and which others they want near."""
    affinity, path = spec["affinity"], path.child("affinity")
    node = affinity.get("nodeAffinity")
    if node:
        _validate_node_affinity(node, path.child("nodeAffinity"), report)
    for name in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(name)
        if rules:
            _validate_pod_affinity(rules, path.child(name), report)


def _validate_node_affinity(affinity: Object, path: Path, report: Report) -> None:
    required = affinity.get(REQUIRED_TERMS)
    if required is not None:
        at = path.child(REQUIRED_TERMS, "nodeSelectorTerms")
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            report.add(NO_TERMS, at)
        for index, term in enumerate(terms):
            _validate_term(term, at.index(index), report, values=True)
    for index, preferred in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        at = path.child(PREFERRED_TERMS).index(index)
        _validate_weight(preferred, at, report)
        term = preferred.get("preference") or {}
        _validate_term(term, at.child("preference"), report, values=False)


def _validate_weight(preferred: Object, path: Path, report: Report) -> None:
    weight = preferred.get("weight") or 0
    if not 1 <= weight <= 100:
        report.add(WEIGHT, path.child("weight"), weight)


def _validate_term(term: Object, path: Path, report: Report, *, values: bool) -> None:
    """Check one term; preferences may compare with values that no label can have."""
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        at = path.child("matchExpressions").index(index)
        _validate_requirement(requirement, at, report, values=values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        _validate_field(requirement, path.child("matchFields").index(index), report)


def _validate_requirement(requirement: Object, path: Path, report: Report, *, values: bool) -> None:
    given = requirement.get("values") or []
    match requirement.get("operator"):
        case "In" | "NotIn":
            if not given:
                report.add(NO_VALUES, path.child("values"))
        case "Exists" | "DoesNotExist":
            if given:
                report.add(VALUES, path.child("values"))
        case "Gt" | "Lt":
            if len(given) != 1:
                report.add(ONE_VALUE, path.child("values"))
        case other:
            _report_operator(other or "", NODE_OPERATORS, path, report)
    check(formats.qualified_name, requirement.get("key") or "", path, report, "key")
    if values:
        for index, value in enumerate(given):
            check(formats.label_value, value, path, report, "values", index)


def _report_operator(value: str, known: tuple[str, ...], path: Path, report: Report) -> None:
    report.add(OPERATOR, path.child("operator"), value, hint=did_you_mean(value, known))


def _validate_field(requirement: Object, path: Path, report: Report) -> None:
    given = requirement.get("values") or []
    operator = requirement.get("operator") or ""
    if operator not in {"In", "NotIn"}:
        _report_operator(operator, ("In", "NotIn"), path, report)
    elif len(given) != 1:
        report.add(FIELD_VALUES, path.child("values"))
    if requirement.get("key") != "metadata.name":
        report.add(FIELD_KEY, path.child("key"), requirement.get("key") or "")
        return
    for index, value in enumerate(given):
        check(formats.dns1123_subdomain, value, path, report, "values", index)


def _validate_pod_affinity(rules: Object, path: Path, report: Report) -> None:
    for index, term in enumerate(rules.get(REQUIRED_TERMS) or ()):
        _validate_pod_term(term, path.child(REQUIRED_TERMS).index(index), report)
    for index, preferred in enumerate(rules.get(PREFERRED_TERMS) or ()):
        at = path.child(PREFERRED_TERMS).index(index)
        _validate_weight(preferred, at, report)
        term = preferred.get("podAffinityTerm") or {}
        _validate_pod_term(term, at.child("podAffinityTerm"), report)


def _validate_pod_term(term: Object, path: Path, report: Report) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        selector = term.get(name)
        if selector:
            validate_label_selector(selector, path.child(name), report)
    for namespace in term.get("namespaces") or ():
        check(formats.dns1123_label, namespace, path, report, "namespace")
    _validate_label_keys(term, path, report)
    key = term.get("topologyKey") or ""
    if not key:
        report.add(TOPOLOGY_KEY, path.child("topologyKey"))
    else:
        check(formats.qualified_name, key, path, report, "topologyKey")


def _validate_label_keys(term: Object, path: Path, report: Report) -> None:
    selector = term.get("labelSelector")
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(name) or []
        if keys and selector is None:
            report.add(NO_SELECTOR, path.child(name))
            continue
        for index, key in enumerate(keys):
            check(formats.qualified_name, key, path, report, name, index)
    selected = selected_keys(selector or {})
    other = set(term.get("mismatchLabelKeys") or ())
    for index, key in enumerate(term.get("matchLabelKeys") or ()):
        at = path.child("matchLabelKeys").index(index)
        if key in selected:
            report.add(BOTH_SELECTOR, at, key)
        if key in other:
            report.add(BOTH_KEYS, at, key)


def selected_keys(selector: Object) -> set[str]:
    """Return the label keys that a selector looks at."""
    keys = set(selector.get("matchLabels") or ())
    return keys | {rule.get("key") or "" for rule in selector.get("matchExpressions") or ()}
