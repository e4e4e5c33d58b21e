"""Validation of a pod template's labels and annotations, also of those that Volcano reads.

Volcano sets the names of pods: a name in the template is not validated.
"""

import re
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import validate_annotations, validate_labels
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.rules import Report

MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"

BUDGET_TWICE: Final = row("F5.exclusive")
BUDGET_NUMBER: Final = row("F5.number")
DELETION_COST_NUMBER: Final = row("V8.ObjectMeta.annotations.deletion-cost")
APP_ARMOR_CONTAINER: Final = row("V8.ObjectMeta.annotations.apparmor-container")
APP_ARMOR_PROFILE: Final = row("V8.ObjectMeta.annotations.apparmor-profile")
NAME_IGNORED: Final = row("X13.pod-name")

_PERCENT: Final = re.compile(r"[+-]?[0-9]+%*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def validate_pod_metadata(metadata: Object, spec: Object, path: Path, report: Report) -> None:
    """Validate the labels and annotations of a pod template."""
    labels = metadata.get("labels")
    if labels:
        validate_labels(labels, path.child("labels"), report)
    annotations = metadata.get("annotations")
    if annotations:
        at = path.child("annotations")
        validate_annotations(annotations, at, report)
        _validate_budget(annotations, at, report)
        _validate_known(annotations, spec, at, report)
    for name in ("name", "generateName"):
        if metadata.get(name):
            report.warn(NAME_IGNORED, path.child(name))


def _validate_budget(annotations: Object, path: Path, report: Report) -> None:
    for key in (MIN_AVAILABLE, MAX_UNAVAILABLE):
        value = annotations.get(key)
        if value is not None and not _is_budget(value):
            report.add(BUDGET_NUMBER, path.key(key), value)
    if MIN_AVAILABLE in annotations and MAX_UNAVAILABLE in annotations:
        report.add(BUDGET_TWICE, path.key(MAX_UNAVAILABLE))


def _is_budget(value: str) -> bool:
    if len(value) > 20:
        return False
    if _INTEGER.fullmatch(value):
        return int(value) > 0
    return bool(_PERCENT.fullmatch(value)) and 0 < int(value.rstrip("%")) < 100


def _validate_known(annotations: Object, spec: Object, path: Path, report: Report) -> None:
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_int32(cost):
        report.add(DELETION_COST_NUMBER, path.key(DELETION_COST), cost)
    keys = sorted(key for key in annotations if key.startswith(APP_ARMOR))
    names = _container_names(spec) if keys else set()
    for key in keys:
        container, profile = key[len(APP_ARMOR) :], annotations[key]
        if container not in names:
            report.add(APP_ARMOR_CONTAINER, path.key(key), container)
        known = profile in {"", "runtime/default", "unconfined"}
        if not known and not profile.startswith("localhost/"):
            report.add(APP_ARMOR_PROFILE, path.key(key), profile, profile=profile)


def _container_names(spec: Object) -> set[str]:
    lists = (spec.get("initContainers") or (), spec.get("containers") or ())
    return {container.get("name") or "" for containers in lists for container in containers}


def _is_int32(text: str) -> bool:
    if len(text) > 11 or not re.fullmatch(r"0|-?[1-9][0-9]*", text):
        return False
    return -(2**31) <= int(text) < 2**31
