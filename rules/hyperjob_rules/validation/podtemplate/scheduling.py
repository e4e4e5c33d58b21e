"""The table of the scheduler's fields: tolerations, topology spread constraints, gates."""

from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.affinity import clashing_keys, has_selector
from hyperjob_rules.validation.podtemplate.objects import each, struct
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.selectors import SELECTOR
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    always,
    at_holder,
    at_least,
    code,
    enum,
    form,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

OPERATORS: Final = ("Equal", "Exists")

KEY_EMPTY: Final = row("V8.Toleration.key.required")
EFFECT_OF_SECONDS: Final = row("V8.Toleration.effect.seconds")
VALUE_OF_EXISTS: Final = row("V8.Toleration.value.exists")
OPERATOR: Final = row("V8.Toleration.operator.enum")
MIN_DOMAINS: Final = row("V8.TopologySpreadConstraint.minDomains.action")
SPREAD_TWICE: Final = row("V8.TopologySpreadConstraint.unique")


def _toleration(_: str, toleration: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check the fields of a toleration together; Kubernetes reports most at `operator`."""
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
    """Validate each constraint; Kubernetes reports the first of two equal ones."""
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
SCHEDULING_GATE: Final = Type(
    "PodSchedulingGate",
    "a scheduling gate",
    always("name", at_holder(form(formats.qualified_name))),
)
