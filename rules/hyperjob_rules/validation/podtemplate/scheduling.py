"""The table of the scheduler's fields: tolerations, topology spread constraints, gates."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.objects import each, items, struct, struct_of
from hyperjob_rules.validation.podtemplate.table import (
    Cell,
    Check,
    Maker,
    Pod,
    Type,
    always,
    at_holder,
    at_least,
    between,
    code,
    enum,
    form,
    labels,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

SELECTOR_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS: Final = (*SELECTOR_OPERATORS, "Gt", "Lt")


def report_operator(
    requirement: Object, known: tuple[str, ...], path: Path, report: Report
) -> None:
    """Report an operator that Kubernetes does not know, with the most similar one."""
    value = requirement.get("operator") or ""
    hint = report.hints.did_you_mean(value, known)
    report.add("V8.Selector.operator.enum", path.child("operator"), value, hint=hint)


def _selector_operator(_: str, requirement: Object, path: Path, _p: Pod, report: Report) -> None:
    if not has_set_operator(requirement, path, report):
        report_operator(requirement, SELECTOR_OPERATORS, path, report)


def has_set_operator(requirement: Object, path: Path, report: Report) -> bool:
    """Check the values of In, NotIn, Exists and DoesNotExist; return whether it is one of these."""
    given = requirement.get("values")
    match requirement.get("operator"):
        case "In" | "NotIn":
            if not given:
                report.add("V8.Selector.values.required", path.child("values"))
        case "Exists" | "DoesNotExist":
            if given:
                report.add("V8.Selector.values.forbidden", path.child("values"))
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
                always("operator", code(_selector_operator)),
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


REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _operator(_: str, requirement: Object, path: Path, _p: Pod, report: Report) -> None:
    if requirement.get("operator") in {"Gt", "Lt"}:
        if len(requirement.get("values") or ()) != 1:
            report.add("V8.Selector.values.one", path.child("values"))
    elif not has_set_operator(requirement, path, report):
        report_operator(requirement, NODE_OPERATORS, path, report)


def _field(requirement: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    given = requirement.get("values") or []
    if requirement.get("operator") not in {"In", "NotIn"}:
        report_operator(requirement, ("In", "NotIn"), path, report)
    elif len(given) != 1:
        report.add("V8.NodeSelectorTerm.matchFields.values", path.child("values"))
    if requirement.get("key") != "metadata.name":
        report.add(
            "V8.NodeSelectorTerm.matchFields.key", path.child("key"), requirement.get("key") or ""
        )
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
            report.add("V8.LabelSelector.matchLabelKeys.unique", at, key)
        if key in other:
            report.add("V8.PodAffinityTerm.matchLabelKeys.exclusive", at, key)


def has_selector(term: Object, path: Path, field: str, report: Report) -> bool:
    """Report label keys without a labelSelector beside them; return whether there is one."""
    if term.get("labelSelector") is None:
        report.add("V8.LabelSelector.matchLabelKeys.forbidden", path.child(field))
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
        optional("matchFields", items(Type("", "", across=(_field,)))),
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
        struct_of(
            "NodeSelector",
            "a required node affinity",
            required(
                "nodeSelectorTerms",
                items(REQUIRED_TERM),
                detail="must have at least one node selector term",
                remedy="add a term, or remove the affinity",
            ),
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
    across=(clashing_keys,),
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


OPERATORS: Final = ("Equal", "Exists")


def _toleration(_: str, toleration: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check the fields of a toleration together; Kubernetes reports most at `operator`."""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    value = toleration.get("value") or ""
    if not toleration.get("key") and operator != "Exists":
        report.add("V8.Toleration.key.required", path.child("operator"), operator)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        report.add("V8.Toleration.effect.seconds", path.child("effect"), effect)
    if operator == "Exists":
        if value:
            report.add("V8.Toleration.value.exists", path.child("operator"), value)
    elif operator in {"", "Equal"}:
        check(formats.label_value, value, path, report, "operator")
    else:
        report.unsupported(
            "V8.Toleration.operator.enum", path.child("operator"), operator, OPERATORS
        )


def _min_domains(domains: int, spread: Object, path: Path, _p: Pod, report: Report) -> None:
    action = spread.get("whenUnsatisfiable") or ""
    if action != "DoNotSchedule":
        report.add(
            "V8.TopologySpreadConstraint.minDomains.action",
            path.child("minDomains"),
            domains,
            action=action,
        )


def _needs_selector(_: object, spread: Object, path: Path, _p: Pod, report: Report) -> None:
    has_selector(spread, path, "matchLabelKeys", report)


POSITIVE: Final = at_least(1, text="must be greater than zero")
TOLERATION: Final = Type(
    "Toleration",
    "a toleration",
    optional("key", form(formats.qualified_name)),
    always("operator", code(_toleration)),
    optional("effect", enum("NoSchedule", "PreferNoSchedule", "NoExecute")),
)
SPREAD: Final = Type(
    "TopologySpreadConstraint",
    "a spread constraint",
    always("maxSkew", POSITIVE, default=0),
    required(
        "topologyKey",
        detail="can not be empty",
        remedy="set topologyKey, such as kubernetes.io/hostname",
    ),
    always("whenUnsatisfiable", enum("DoNotSchedule", "ScheduleAnyway")),
    pointer("minDomains", POSITIVE, code(_min_domains)),
    pointer("nodeAffinityPolicy", enum("Honor", "Ignore")),
    pointer("nodeTaintsPolicy", enum("Honor", "Ignore")),
    optional("matchLabelKeys", code(_needs_selector), each(form(formats.qualified_name))),
    optional("labelSelector", struct(SELECTOR)),
    across=(clashing_keys,),
)


def spreads(value: list[Object], spec: Object, path: Path, pod: Pod, report: Report) -> None:
    """Validate each constraint; Kubernetes reports the first of two equal ones."""
    listed = path.child("topologySpreadConstraints")
    pairs = [(one.get("topologyKey") or "", one.get("whenUnsatisfiable") or "") for one in value]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, one in enumerate(value):
        at, (key, action) = listed.index(index), pairs[index]
        if last[key, action] > index:
            pair = at.child("{topologyKey, whenUnsatisfiable}")
            report.add("V8.TopologySpreadConstraint.unique", pair, f"{{{key}, {action}}}")
        SPREAD.walk(one, spec, at, pod, report)


READINESS_GATE: Final = Type(
    "PodReadinessGate", "a readiness gate", always("conditionType", form(formats.qualified_name))
)
SCHEDULING_GATE: Final = Type(
    "PodSchedulingGate",
    "a scheduling gate",
    always("name", at_holder(form(formats.qualified_name))),
)
