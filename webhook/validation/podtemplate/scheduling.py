"""The table of what the scheduler reads: tolerations, spreading, gates."""

from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.fieldpath import Path
from webhook.validation.forms import check
from webhook.validation.podtemplate.affinity import clashing_keys, has_selector
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.podtemplate.selectors import SELECTOR
from webhook.validation.podtemplate.table import (
    Type,
    always,
    at_least,
    code,
    each,
    enum,
    form,
    optional,
    pointer,
    required,
    struct,
)
from webhook.validation.report import Report
from webhook.validation.rules import DUPLICATE, INVALID, NOT_SUPPORTED, rule

OPERATORS: Final = ("Equal", "Exists")

KEY_EMPTY: Final = rule(
    "V8.Toleration.key.required",
    INVALID,
    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
    "a toleration has no key and compares values",
    "add the key of the taint, or use operator Exists",
)
EFFECT_OF_SECONDS: Final = rule(
    "V8.Toleration.effect.seconds",
    INVALID,
    "effect must be 'NoExecute' when `tolerationSeconds` is set",
    "a toleration has tolerationSeconds and another effect than NoExecute",
    "set effect: NoExecute, or remove tolerationSeconds",
)
VALUE_OF_EXISTS: Final = rule(
    "V8.Toleration.value.exists",
    INVALID,
    "value must be empty when `operator` is 'Exists'",
    "a toleration with operator Exists has a value",
    "remove the value, or use operator Equal",
)
OPERATOR: Final = rule(
    "V8.Toleration.operator.enum",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a toleration has an operator that Kubernetes does not know",
    "use one of the values listed; upper and lower case matter",
)
MIN_DOMAINS: Final = rule(
    "V8.TopologySpreadConstraint.minDomains.action",
    INVALID,
    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}",
    "a spread constraint that pods may break has minDomains",
    "set whenUnsatisfiable: DoNotSchedule, or remove minDomains",
)
SPREAD_TWICE: Final = rule(
    "V8.TopologySpreadConstraint.unique",
    DUPLICATE,
    "",
    "two spread constraints have the same topologyKey and whenUnsatisfiable",
    "remove one of them",
)


def _toleration(_: str, toleration: Object, path: Path, _p: Pod, report: Report) -> None:
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    value = toleration.get("value") or ""
    if not toleration.get("key") and operator != "Exists":
        report.add(KEY_EMPTY, path.child("operator"), operator)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        report.add(EFFECT_OF_SECONDS, path.child("effect"), effect)
    if operator == "Exists":
        if value:
            report.add(VALUE_OF_EXISTS, path.child("operator"), value)
    elif operator in {"", "Equal"}:
        check(formats.label_value, value, path, report, "operator")
    else:
        report.unsupported(OPERATOR, path.child("operator"), operator, OPERATORS)


def _min_domains(domains: int, spread: Object, path: Path, _p: Pod, report: Report) -> None:
    action = spread.get("whenUnsatisfiable") or ""
    if action != "DoNotSchedule":
        report.add(MIN_DOMAINS, path.child("minDomains"), domains, action=action)


def _needs_selector(_: object, spread: Object, path: Path, _p: Pod, report: Report) -> None:
    has_selector(spread, path, "matchLabelKeys", report)


def _gate(name: str, _o: object, path: Path, _p: Pod, report: Report) -> None:
    # Kubernetes reports these at the gate, not at its name.
    check(formats.qualified_name, name, path, report)


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
    together=(clashing_keys,),
)


def spreads(value: list[Object], spec: Object, path: Path, pod: Pod, report: Report) -> None:
    """Check each constraint; Kubernetes reports the first of two that are the same."""
    listed = path.child("topologySpreadConstraints")
    pairs = [(one.get("topologyKey") or "", one.get("whenUnsatisfiable") or "") for one in value]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, one in enumerate(value):
        at, (key, action) = listed.index(index), pairs[index]
        if last[key, action] > index:
            pair = at.child("{topologyKey, whenUnsatisfiable}")
            report.add(SPREAD_TWICE, pair, f"{{{key}, {action}}}")
        SPREAD.walk(one, spec, at, pod, report)


READINESS_GATE: Final = Type(
    "PodReadinessGate", "a readiness gate", always("conditionType", form(formats.qualified_name))
)
SCHEDULING_GATE: Final = Type("PodSchedulingGate", "a scheduling gate", always("name", code(_gate)))
