"""What happens when sub-jobs end: failure policy, success policy, order of start."""

from collections.abc import Mapping
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
    WARNING,
    rule,
)
from webhook.validation.suggest import did_you_mean

ACTIONS: Final = (
    "FailHyperJob",
    "RestartHyperJob",
    "RestartJob",
    "MigrateJob",
    "RestartHyperJobAndIgnoreMaxRestarts",
    "RestartJobAndIgnoreMaxRestarts",
)
COUNTED: Final = frozenset({"RestartHyperJob", "RestartJob", "MigrateJob"})
FAILED_PHASES: Final = ("Failed", "Aborted", "Terminated")
OPERATORS: Final = ("All", "Any")
DEPENDENCY_STATUSES: Final = ("Ready", "Complete")

ENUM = rule(
    "L1",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a policy of the HyperJob has a value that is not known",
    "use one of the values listed; upper and lower case matter",
)
ACTION_MISSING = rule(
    "L2", REQUIRED, "", "a rule of the failure policy does nothing", "add an action"
)
NEGATIVE = rule(
    "L3",
    INVALID,
    "must be greater than or equal to 0",
    "the number of restarts is negative",
    "use 0 or more",
)
NEVER = rule(
    "L4",
    INVALID,
    "can never match: without onJobPhases, onClusterLost must be true or unset",
    "a rule of the failure policy answers nothing",
    "name the phases that it answers, or remove onClusterLost",
)
SHADOWED = rule(
    "L5",
    INVALID,
    "can never match: rules[{earlier}] answers all that this one does",
    "an earlier rule of the failure policy takes every failure that this one is for",
    "put the more special rule first, or remove it",
)
UNKNOWN_JOB = rule(
    "L6",
    NOT_FOUND,
    "{hint}",
    "a policy or a dependency names a replicatedJob that the HyperJob lacks",
    "correct the name",
)
TWICE = rule(
    "L7",
    DUPLICATE,
    "",
    "a list in a policy has the same value twice",
    "remove one of them",
)
NO_RESTARTS = rule(
    "L8",
    WARNING,
    "is 0, so rules that restart or migrate fail the HyperJob at the first failure",
    "a failure policy restarts something and allows no restart",
    "set maxRestarts to the number of restarts that are allowed",
)
DEPENDS_ON_SELF = rule(
    "L9",
    FORBIDDEN,
    "must not depend on itself",
    "a replicatedJob waits for itself and never starts",
    "remove the dependency",
)
DEPENDS_ON_LATER = rule(
    "L10",
    INVALID,
    "must be the name of an earlier replicatedJob{hint}",
    "a replicatedJob waits for one that comes later in the list, or for none that there is",
    "move the replicatedJob that is waited for before this one, or correct the name",
)
STATUS_MISSING = rule(
    "L11",
    REQUIRED,
    "",
    "a dependency does not say what it waits for",
    "set name, and status to Ready or Complete",
)

Names = Mapping[str, int]


def validate_failure_policy(policy: Object, names: Names, path: Path, report: Report) -> None:
    """Check what is done about failures; `names` are those of the replicatedJobs."""
    restarts = policy.get("maxRestarts") or 0
    if restarts < 0:
        report.add(NEGATIVE, path.child("maxRestarts"), restarts)
    rules: list[Object] = policy.get("rules") or []
    for index, each in enumerate(rules):
        at = path.child("rules").index(index)
        _validate_rule(each, names, at, report)
        for earlier in range(index):
            if _covers(rules[earlier], each):
                report.add(SHADOWED, at, each.get("action") or "", earlier=earlier)
                break
    if not restarts and any(each.get("action") in COUNTED for each in rules):
        report.warn(NO_RESTARTS, path.child("maxRestarts"))


def _validate_rule(each: Object, names: Names, path: Path, report: Report) -> None:
    action = each.get("action")
    if not action:
        report.add(ACTION_MISSING, path.child("action"))
    elif action not in ACTIONS:
        report.unsupported(ENUM, path.child("action"), action, ACTIONS)
    phases = each.get("onJobPhases") or []
    seen: set[str] = set()
    for index, phase in enumerate(phases):
        at = path.child("onJobPhases").index(index)
        if phase not in FAILED_PHASES:
            report.unsupported(ENUM, at, phase, FAILED_PHASES)
        elif phase in seen:
            report.add(TWICE, at, phase)
        seen.add(phase)
    if not phases and each.get("onClusterLost") is False:
        report.add(NEVER, path, action or "")
    _validate_targets(each, names, path, report)


def _answers(each: Object) -> tuple[frozenset[str], bool]:
    """Return the phases that a rule answers, and whether it answers the loss of a cluster."""
    phases, lost = each.get("onJobPhases") or [], each.get("onClusterLost")
    if not phases and lost is None:
        return frozenset(FAILED_PHASES), True
    return frozenset(phases), bool(lost)


def _covers(earlier: Object, later: Object) -> bool:
    """Tell whether an earlier rule takes everything that a later one is for."""
    targets = earlier.get("targetReplicatedJobs")
    if targets and not set(later.get("targetReplicatedJobs") or ("",)) <= set(targets):
        return False
    (phases, lost), (later_phases, later_lost) = _answers(earlier), _answers(later)
    if not later_phases and not later_lost:
        return False
    return later_phases <= phases and (lost or not later_lost)


def validate_success_policy(policy: Object, names: Names, path: Path, report: Report) -> None:
    """Check when the HyperJob is completed; `names` are those of the replicatedJobs."""
    operator = policy.get("operator")
    if operator and operator not in OPERATORS:
        report.unsupported(ENUM, path.child("operator"), operator, OPERATORS)
    _validate_targets(policy, names, path, report)


def _validate_targets(policy: Object, names: Names, path: Path, report: Report) -> None:
    seen: set[str] = set()
    for index, target in enumerate(policy.get("targetReplicatedJobs") or ()):
        at = path.child("targetReplicatedJobs").index(index)
        if target not in names:
            report.missing(UNKNOWN_JOB, at, target, names)
        elif target in seen:
            report.add(TWICE, at, target)
        seen.add(target)


def validate_depends_on(job: Object, earlier: Names, path: Path, report: Report) -> None:
    """Check what a replicatedJob waits for; `earlier` are those before it in the list."""
    seen: set[str] = set()
    for index, dependency in enumerate(job.get("dependsOn") or ()):
        at = path.child("dependsOn").index(index)
        name, status = dependency.get("name") or "", dependency.get("status") or ""
        if not name:
            report.add(STATUS_MISSING, at.child("name"))
        elif name == job.get("name"):
            report.add(DEPENDS_ON_SELF, at.child("name"))
        elif name not in earlier:
            hint = did_you_mean(name, earlier)
            report.add(DEPENDS_ON_LATER, at.child("name"), name, hint=hint)
        elif name in seen:
            report.add(TWICE, at.child("name"), name)
        seen.add(name)
        if not status:
            report.add(STATUS_MISSING, at.child("status"))
        elif status not in DEPENDENCY_STATUSES:
            at_status = at.child("status")
            report.unsupported(ENUM, at_status, status, DEPENDENCY_STATUSES)
