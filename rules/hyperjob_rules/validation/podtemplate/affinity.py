"""The table of affinity: node affinity, pod affinity and anti-affinity."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.objects import each, items, struct
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.selectors import (
    NODE_OPERATORS,
    ONE_VALUE,
    SELECTOR,
    has_set_operator,
    report_operator,
    selected_keys,
)
from hyperjob_rules.validation.podtemplate.table import (
    Cell,
    Check,
    Maker,
    Pod,
    Type,
    always,
    between,
    code,
    form,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"

FIELD_KEY: Final = row("V8.NodeSelectorTerm.matchFields.key")
FIELD_VALUES: Final = row("V8.NodeSelectorTerm.matchFields.values")
NO_SELECTOR: Final = row("V8.LabelSelector.matchLabelKeys.forbidden")
BOTH_SELECTOR: Final = row("V8.LabelSelector.matchLabelKeys.unique")
BOTH_KEYS: Final = row("V8.PodAffinityTerm.matchLabelKeys.exclusive")


def _operator(_: str, requirement: Object, path: Path, _p: Pod, report: Report) -> None:
    if requirement.get("operator") in {"Gt", "Lt"}:
        if len(requirement.get("values") or ()) != 1:
            report.add(ONE_VALUE, path.child("values"))
    elif not has_set_operator(requirement, path, report):
        report_operator(requirement, NODE_OPERATORS, path, report)


def _field(requirement: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    given = requirement.get("values") or []
    if requirement.get("operator") not in {"In", "NotIn"}:
        report_operator(requirement, ("In", "NotIn"), path, report)
    elif len(given) != 1:
        report.add(FIELD_VALUES, path.child("values"))
    if requirement.get("key") != "metadata.name":
        report.add(FIELD_KEY, path.child("key"), requirement.get("key") or "")
        return
    for index, value in enumerate(given):
        check(formats.dns1123_subdomain, value, path, report, "values", index)


def _namespaces(namespaces: list[str], _o: object, path: Path, _p: Pod, report: Report) -> None:
    # Kubernetes reports these at `namespace`, which is no field.
    for name in namespaces:
        check(formats.dns1123_label, name, path, report, "namespace")


def clashing_keys(term: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    """Compare matchLabelKeys with the labelSelector beside them, and with mismatchLabelKeys."""
    keys = term.get("matchLabelKeys")
    if not keys:
        return
    selected = selected_keys(term.get("labelSelector") or {})
    other = set(term.get("mismatchLabelKeys") or ())
    for index, key in enumerate(keys):
        at = path.child("matchLabelKeys").index(index)
        if key in selected:
            report.add(BOTH_SELECTOR, at, key)
        if key in other:
            report.add(BOTH_KEYS, at, key)


def has_selector(term: Object, path: Path, field: str, report: Report) -> bool:
    """Report label keys without a labelSelector beside them; return whether there is one."""
    if term.get("labelSelector") is None:
        report.add(NO_SELECTOR, path.child(field))
        return False
    return True


def _label_keys(cell: Cell) -> Check:
    inner = each(form(formats.qualified_name))(cell)

    def validate(value: list[str], term: Object, path: Path, pod: Pod, report: Report) -> None:
        if has_selector(term, path, cell.field, report):
            inner(value, term, path, pod, report)

    return validate


def _term(name: str, *values: Maker) -> Type:
    """Return the rows of a node selector term, whose values must pass `values`."""
    return Type(
        name,
        "a node selector term",
        optional(
            "matchExpressions",
            items(
                Type(
                    f"{name}Requirement",
                    "a requirement of a node selector term",
                    always("operator", code(_operator)),
                    always("key", form(formats.qualified_name)),
                    *(optional("values", each(maker)) for maker in values),
                )
            ),
        ),
        optional("matchFields", items(Type("", "", together=(_field,)))),
    )


WEIGHT: Final = between(1, 100, text="must be in the range 1-100")
REQUIRED_TERM: Final = _term("NodeSelector", form(formats.label_value))
PREFERRED_TERM: Final = _term("PreferredNodeSelector")
"""The values of a preferred term need not be valid label values."""

NODE: Final = Type(
    "NodeAffinity",
    "a node affinity",
    pointer(
        REQUIRED_TERMS,
        struct(
            Type(
                "NodeSelector",
                "a required node affinity",
                required(
                    "nodeSelectorTerms",
                    items(REQUIRED_TERM),
                    detail="must have at least one node selector term",
                    remedy="add a term, or remove the affinity",
                ),
            )
        ),
    ),
    optional(
        PREFERRED_TERMS,
        items(
            Type(
                "PreferredSchedulingTerm",
                "a preferred node affinity",
                always("weight", WEIGHT, default=0),
                optional("preference", struct(PREFERRED_TERM)),
            )
        ),
    ),
)
POD_TERM: Final = Type(
    "PodAffinityTerm",
    "a pod affinity term",
    optional("labelSelector", struct(SELECTOR)),
    optional("namespaceSelector", struct(SELECTOR)),
    optional("namespaces", code(_namespaces)),
    optional("matchLabelKeys", _label_keys),
    optional("mismatchLabelKeys", _label_keys),
    required(
        "topologyKey",
        form(formats.qualified_name),
        detail="can not be empty",
        remedy="set topologyKey, such as kubernetes.io/hostname",
    ),
    together=(clashing_keys,),
)
NEAR: Final = Type(
    "PodAffinity",
    "a pod affinity",
    optional(REQUIRED_TERMS, items(POD_TERM)),
    optional(
        PREFERRED_TERMS,
        items(
            Type(
                "WeightedPodAffinityTerm",
                "a preferred pod affinity",
                always("weight", WEIGHT, default=0),
                always("podAffinityTerm", struct(POD_TERM), default={}),
            )
        ),
    ),
)
AFFINITY: Final = Type(
    "Affinity",
    "an affinity",
    optional("nodeAffinity", struct(NODE)),
    optional("podAffinity", struct(NEAR)),
    optional("podAntiAffinity", struct(NEAR)),
)
