"""What the scheduler is told: taints tolerated, spreading, gates."""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate.affinity import (
    BOTH_SELECTOR,
    NO_SELECTOR,
    TOPOLOGY_KEY,
    selected_keys,
)
from webhook.validation.podtemplate.selectors import validate_label_selector
from webhook.validation.report import Report
from webhook.validation.rules import DUPLICATE, INVALID, NOT_SUPPORTED, rule

OPERATORS: Final = ("Equal", "Exists")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
NODE_POLICIES: Final = ("Honor", "Ignore")

KEY_EMPTY = rule(
    "V8",
    INVALID,
    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
    "a toleration has no key and compares values",
    "add the key of the taint, or use operator Exists",
)
EFFECT_OF_SECONDS = rule(
    "V8",
    INVALID,
    "effect must be 'NoExecute' when `tolerationSeconds` is set",
    "a toleration has a time limit and is not about eviction",
    "set effect: NoExecute, or remove tolerationSeconds",
)
VALUE_OF_EXISTS = rule(
    "V8",
    INVALID,
    "value must be empty when `operator` is 'Exists'",
    "a toleration of any value has a value",
    "remove the value, or use operator Equal",
)
ENUM = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a toleration or spread constraint has a value that Kubernetes does not know",
    "use one of the values listed; upper and lower case matter",
)
NOT_POSITIVE = rule(
    "V8",
    INVALID,
    "must be greater than zero",
    "maxSkew or minDomains of a spread constraint is not positive",
    "use 1 or more",
)
MIN_DOMAINS = rule(
    "V8",
    INVALID,
    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}",
    "a spread constraint that may be broken asks for a number of domains",
    "set whenUnsatisfiable: DoNotSchedule, or remove minDomains",
)
TWICE = rule(
    "V8",
    DUPLICATE,
    "",
    "two spread constraints, or two scheduling gates, are the same",
    "remove one of them",
)


def validate_tolerations(spec: Object, path: Path, report: Report) -> None:
    """Check which taints of nodes are tolerated."""
    for index, toleration in enumerate(spec["tolerations"]):
        at = path.child("tolerations").index(index)
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        effect, value = toleration.get("effect") or "", toleration.get("value") or ""
        if key:
            check(formats.qualified_name, key, at, report, "key")
        elif operator != "Exists":
            report.add(KEY_EMPTY, at.child("operator"), operator)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            report.add(EFFECT_OF_SECONDS, at.child("effect"), effect)
        if operator in {"", "Equal"}:
            check(formats.label_value, value, at, report, "operator")
        elif operator == "Exists":
            if value:
                report.add(VALUE_OF_EXISTS, at.child("operator"), value)
        else:
            report.unsupported(ENUM, at.child("operator"), operator, OPERATORS)
        if effect and effect not in EFFECTS:
            report.unsupported(ENUM, at.child("effect"), effect, EFFECTS)


def validate_topology_spread(spec: Object, path: Path, report: Report) -> None:
    """Check how evenly pods are spread."""
    constraints, path = spec["topologySpreadConstraints"], path.child("topologySpreadConstraints")
    kinds = [(c.get("topologyKey") or "", c.get("whenUnsatisfiable") or "") for c in constraints]
    for index, constraint in enumerate(constraints):
        at = path.index(index)
        key, action = kinds[index]
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            report.add(NOT_POSITIVE, at.child("maxSkew"), skew)
        if not key:
            report.add(TOPOLOGY_KEY, at.child("topologyKey"))
        if action not in ACTIONS:
            report.unsupported(ENUM, at.child("whenUnsatisfiable"), action, ACTIONS)
        if kinds[index] in kinds[index + 1 :]:
            pair = at.child("{topologyKey, whenUnsatisfiable}")
            report.add(TWICE, pair, f"{{{key}, {action}}}")
        _validate_domains(constraint, action, at, report)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(name)
            if policy is not None and policy not in NODE_POLICIES:
                report.unsupported(ENUM, at.child(name), policy, NODE_POLICIES)
        _validate_match(constraint, at, report)


def _validate_domains(constraint: Object, action: str, path: Path, report: Report) -> None:
    domains = constraint.get("minDomains")
    if domains is None:
        return
    if domains <= 0:
        report.add(NOT_POSITIVE, path.child("minDomains"), domains)
    if action != "DoNotSchedule":
        report.add(MIN_DOMAINS, path.child("minDomains"), domains, action=action)


def _validate_match(constraint: Object, path: Path, report: Report) -> None:
    selector = constraint.get("labelSelector")
    keys = constraint.get("matchLabelKeys") or []
    if keys and selector is None:
        report.add(NO_SELECTOR, path.child("matchLabelKeys"))
    selected = selected_keys(selector or {})
    for index, key in enumerate(keys):
        at = path.child("matchLabelKeys").index(index)
        check(formats.qualified_name, key, at, report)
        if key in selected:
            report.add(BOTH_SELECTOR, at, key)
    if selector:
        validate_label_selector(selector, path.child("labelSelector"), report)


def validate_readiness_gates(spec: Object, path: Path, report: Report) -> None:
    """Check what pods wait for before they count as ready."""
    for index, gate in enumerate(spec["readinessGates"]):
        at = path.child("readinessGates").index(index)
        check(formats.qualified_name, gate.get("conditionType") or "", at, report, "conditionType")


def validate_scheduling_gates(spec: Object, path: Path, report: Report) -> None:
    """Check what pods wait for before they are scheduled."""
    seen: set[str] = set()
    for index, gate in enumerate(spec["schedulingGates"]):
        at = path.child("schedulingGates").index(index)
        name = gate.get("name") or ""
        check(formats.qualified_name, name, at, report)
        if name in seen:
            report.add(TWICE, at, name)
        seen.add(name)
