"""Alerts, dashboard and the metrics page name only what the processes show, and links lead on."""

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generators.metrics import computed, families, render
from hyperjob_core.registry import REGISTRY

ROOT = Path(__file__).parents[3]
FILES = ROOT / "charts" / "hyperjob" / "files"
RUNBOOKS = ROOT / "docs" / "runbooks.md"
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FILES / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = json.loads((FILES / "dashboard.json").read_text(encoding="utf-8"))[
    "panels"
]
RECORDS: dict[str, str] = {
    rule["record"]: rule["expr"]
    for group in yaml.safe_load((FILES / "records.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}
EXPRESSIONS = [
    *((rule["alert"], rule["expr"]) for rule in ALERTS),
    *RECORDS.items(),
    *((panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]),
]
OF_PROMETHEUS = {"process_resident_memory_bytes": {"pod"}}
OF_TARGETS = {"pod", "job", "instance"}
WORDS = frozenset(
    [
        *("absent", "and", "by", "clamp_min", "deriv", "histogram_quantile", "increase", "max"),
        *("max_over_time", "min", "on", "or", "rate", "sum", "sum_over_time", "time", "unless"),
    ]
)
SHARED = (
    "controller_runtime_",
    "workqueue_",
    "leader_election_",
    "certwatcher_",
    "rest_client_",
    "process_",
)
"""Prefixes of metrics that every Go controller has, or every process."""
PARTS = {"histogram": ("_bucket", "_sum", "_count")}


def series() -> dict[str, set[str]]:
    """Give every series that can be asked for, with its labels."""
    known: dict[str, set[str]] = {name: set(labels) for name, labels in OF_PROMETHEUS.items()}
    for family in families():
        for part in PARTS.get(family.type, ("",)):
            known[family.name + part] = {*family.labels, *(["le"] if part == "_bucket" else [])}
    for record, expression in RECORDS.items():
        known[record] = set(*(part.split(", ") for part in grouped(expression)))
    return known


def grouped(expression: str) -> list[str]:
    return re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)


KNOWN = series()


def names_in(expression: str) -> set[str]:
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on) \([^)]*\)", "", expression)
    return set(re.findall(r"[a-z_][a-z0-9_:]*", bare)) - WORDS


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[one for one, _ in EXPRESSIONS])
def test_expressions_ask_for_series_and_labels_that_there_are(where: str, expression: str) -> None:
    names = names_in(expression)
    assert names, where
    assert names <= KNOWN.keys(), where
    labels = set().union(*(KNOWN[name] for name in names)) | OF_TARGETS
    used = chain.from_iterable(part.split(", ") for part in grouped(expression))
    selected = re.findall(r"[{,]\s*([a-z_]+)\s*[=!]", expression)
    assert {*used, *selected} <= labels, where
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing), where


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[one for one, _ in EXPRESSIONS])
def test_no_expression_counts_what_other_controllers_show(where: str, expression: str) -> None:
    shared = {name for name in names_in(expression) if name.startswith(SHARED)}
    named = set(
        re.findall(r'([a-z_]+)\{(?:name|controller)=~?"[^"]*(?:hyperjob|trainjob)', expression)
    )
    ours = "and on (job, instance) hyperjob_build_info" in expression
    assert shared == named or ours, where


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[one for one, _ in EXPRESSIONS])
def test_rate_and_increase_are_of_counters_and_deriv_is_of_gauges(
    where: str, expression: str
) -> None:
    kinds = {family.name: family.type for family in families()}
    for function, name in re.findall(r"\b(rate|increase|deriv)\(([a-z_]+)", expression):
        counted = re.sub(r"_(bucket|sum|count)$", "", name)
        kind = kinds.get(name) or kinds[counted]
        assert (kind == "gauge") == (function == "deriv"), where


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_each_alert_says_what_it_means_and_has_a_runbook(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    notes = rule["annotations"]
    assert notes["summary"]
    assert notes["description"]
    page, _, anchor = notes["runbook_url"].partition("#")
    assert ROOT / page == RUNBOOKS
    assert anchor == rule["alert"].lower()
    used = re.findall(r"\$labels\.(\w+)", notes["summary"] + notes["description"])
    grouped = re.findall(r"by \(([^)]*)\)", rule["expr"])
    assert set(used) <= {label for group in grouped for label in group.split(", ")}


COUNTED_LATER = {
    # By resource, webhook, code or outcome, which are known with the first of each.
    "controller_runtime_webhook_requests_total",
    "controller_runtime_webhook_latency_seconds_bucket",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_total",
    "hyperjob_informer_short_watches_total",
    "rest_client_requests_total",
}
"""Series that exist once a webhook, a controller, an informer or a client has started."""


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_what_an_alert_counts_is_shown_before_the_first_count(rule: dict[str, Any]) -> None:
    # Prometheus sees no increase in a series that begins with its first count.
    collectors = (REGISTRY, *computed())
    found = (family for collector in collectors for family in collector.collect())
    shown = {sample.name for family in found for sample in family.samples}
    counted = set(re.findall(r"(?:increase|rate)\(\s*([a-z_]+)", rule["expr"]))
    assert counted - COUNTED_LATER <= shown


def test_every_runbook_is_for_an_alert() -> None:
    heads = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    assert heads == [rule["alert"] for rule in ALERTS]


NOT_SHOWN = {
    "hyperjob_credential_renewed_timestamp_seconds",
    "hyperjob_events_dropped_total",
    "hyperjob_queue_admission",
}
"""Metrics that only alerts and people read."""


def test_everything_measured_of_training_is_on_the_dashboard() -> None:
    drawn = set().union(
        *(names_in(target["expr"]) for panel in PANELS for target in panel["targets"])
    )
    assert RECORDS.keys() <= drawn
    shown = drawn.union(*map(names_in, RECORDS.values()))
    for family in families():
        if family.name.startswith("hyperjob_") and "informer" not in family.name:
            parts = PARTS.get(family.type, ("",))
            told = {family.name + part for part in parts} & shown
            assert told or family.name in NOT_SHOWN, family.name


HARMLESS = frozenset(
    [
        *("webhook", "code", "controller", "result", "method", "verb", "host", "reason"),
        *("resource", "version", "python", "phase", "outcome", "type", "cluster", "name"),
        *("place", "queue", "preempting_queue", "namespace", "accelerator", "use", "mode"),
        *("account", "page", "size"),
    ]
)


def test_no_label_holds_the_name_of_an_object_but_that_of_a_cluster_a_queue_or_a_namespace() -> (
    None
):
    assert {label for family in families() for label in family.labels} <= HARMLESS
    named = {family.name for family in families() if "name" in family.labels}
    assert all(name.startswith(("workqueue_", "leader_election_")) for name in named)


def test_the_page_of_metrics_is_current() -> None:
    page = ROOT / "docs" / "reference" / "metrics.md"
    assert page.read_text(encoding="utf-8") == render()
