"""Labels and annotations of pods, and the annotations that mean something to Volcano.

The names of pods are Volcano's to give, so none is looked at here.
"""

import re
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.fieldpath import Path
from webhook.validation.forms import validate_annotations, validate_labels
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, WARNING, rule

MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"

BUDGET_TWICE: Final = rule(
    "F5.exclusive",
    FORBIDDEN,
    f"may not be set together with `{MIN_AVAILABLE}`",
    "both disruption budgets of Volcano are set on the same pods",
    "keep one of the two annotations",
)
BUDGET_NUMBER: Final = rule(
    "F5.number",
    INVALID,
    "must be a positive integer or a percentage from 1% to 99%",
    "Volcano's pod webhook refuses every pod with another disruption budget",
    "write a number such as 2, or a share such as 50%",
)
DELETION_COST_NUMBER: Final = rule(
    "V8.ObjectMeta.annotations.deletion-cost",
    INVALID,
    "must be a 32bit integer",
    "the deletion cost of pods is no number",
    "write a whole number as text",
)
APP_ARMOR_CONTAINER: Final = rule(
    "V8.ObjectMeta.annotations.apparmor-container",
    INVALID,
    "container not found",
    "an AppArmor annotation names a container that the pod lacks",
    "correct the name after the slash, or use securityContext.appArmorProfile",
)
APP_ARMOR_PROFILE: Final = rule(
    "V8.ObjectMeta.annotations.apparmor-profile",
    INVALID,
    'invalid AppArmor profile name: "{profile}"',
    "an AppArmor annotation has a value that is no profile",
    "use runtime/default, unconfined or localhost/NAME",
)
NAME_IGNORED: Final = rule(
    "X13.pod-name",
    WARNING,
    "has no effect: Volcano names the pods itself",
    "the template gives its pods a name",
    "remove the name from the template's metadata",
)

_PERCENT: Final = re.compile(r"[+-]?[0-9]+%*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def validate_pod_metadata(metadata: Object, spec: Object, path: Path, report: Report) -> None:
    """Check the labels and annotations of a pod template."""
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
