"""Validation of failure policy, success policy and dependencies of replicatedJobs."""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    WARNING,
    Report,
    rule,
)

COUNTED: Final = frozenset({"RestartHyperJob", "RestartJob", "MigrateJob"})
FAILED_PHASES: Final = ("Failed", "Aborted", "Terminated")

NEVER = rule(
    "L4",
    INVALID,
    "can never match: without onJobPhases, onClusterLost must be true or unset",
    "a rule of the failure policy matches no failure",
    "name the phases that it matches, or remove onClusterLost",
)
SHADOWED = rule(
    "L5",
    INVALID,
    "can never match: rules[{earlier}] matches every failure that this rule matches",
    "an earlier rule of the failure policy matches every failure that this rule matches",
    "put the more specific rule first, or remove it",
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
    "a rule of the failure policy restarts or moves sub-jobs, and maxRestarts allows no restart",
    "set maxRestarts to the number of restarts that are allowed",
)
NO_STALL_RESTARTS = rule(
    "L22",
    WARNING,
    "fails the HyperJob when its programs make no steps: each restart counts against"
    " failurePolicy.maxRestarts, which allows none",
    "onNoProgress restarts or moves sub-jobs, and maxRestarts allows no restart",
    "set failurePolicy.maxRestarts to the number of restarts that are allowed",
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
    "a replicatedJob depends on a later or missing replicatedJob of the list",
    "move the replicatedJob on which this one depends before it, or correct the name",
)
NO_DEADLINE = rule(
    "L11",
    WARNING,
    "has no effect without activeDeadlineSeconds",
    "activeDeadlineMode is set, and there is no deadline",
    "set activeDeadlineSeconds, or remove activeDeadlineMode",
)
Names = Mapping[str, int]


def validate_on_no_progress(spec: Object, path: Path, report: Report) -> None:
    """Warn about restarts of stalled programs that maxRestarts does not allow."""
    allowed = (spec.get("failurePolicy") or {}).get("maxRestarts")
    if spec.get("onNoProgress") in ("Restart", "Migrate") and not allowed:
        report.warn(NO_STALL_RESTARTS, path.child("onNoProgress"))


def validate_failure_policy(policy: Object, names: Names, path: Path, report: Report) -> None:
    """Validate the failure policy; `names` are those of the replicatedJobs."""
    rules: list[Object] = policy.get("rules") or []
    for index, each in enumerate(rules):
        at = path.child("rules").index(index)
        _validate_rule(each, names, at, report)
        for earlier in range(index):
            if _covers(rules[earlier], each):
                report.add(SHADOWED, at, each.get("action") or "", earlier=earlier)
                break
    if not policy.get("maxRestarts") and any(each.get("action") in COUNTED for each in rules):
        report.warn(NO_RESTARTS, path.child("maxRestarts"))


def _validate_rule(each: Object, names: Names, path: Path, report: Report) -> None:
    """Validate one rule of the failure policy by itself."""
    phases = each.get("onJobPhases") or []
    seen: set[str] = set()
    for index, phase in enumerate(phases):
        at = path.child("onJobPhases").index(index)
        if phase in seen:
            report.add(TWICE, at, phase)
        seen.add(phase)
    if not phases and each.get("onClusterLost") is False:
        report.add(NEVER, path, each.get("action") or "")
    validate_targets(each, names, path, report)


def _answers(each: Object) -> tuple[frozenset[str], bool]:
    """Return the phases that a rule matches, and whether it matches the loss of a cluster."""
    phases, lost = each.get("onJobPhases") or [], each.get("onClusterLost")
    if not phases and lost is None:
        return frozenset(FAILED_PHASES), True
    return frozenset(phases), bool(lost)


def _covers(earlier: Object, later: Object) -> bool:
    """Return whether an earlier rule matches every failure that a later one matches."""
    targets = earlier.get("targetReplicatedJobs")
    if targets and not set(later.get("targetReplicatedJobs") or ("",)) <= set(targets):
        return False
    (phases, lost), (later_phases, later_lost) = _answers(earlier), _answers(later)
    if not later_phases and not later_lost:
        return False
    return later_phases <= phases and (lost or not later_lost)


def validate_targets(policy: Object, names: Names, path: Path, report: Report) -> None:
    """Check that targetReplicatedJobs names existing replicatedJobs, each once."""
    seen: set[str] = set()
    for index, target in enumerate(policy.get("targetReplicatedJobs") or ()):
        at = path.child("targetReplicatedJobs").index(index)
        if target not in names:
            report.missing(UNKNOWN_JOB, at, target, names)
        elif target in seen:
            report.add(TWICE, at, target)
        seen.add(target)


def validate_deadline(spec: Object, path: Path, report: Report) -> None:
    """Warn about a mode of the deadline without a deadline."""
    if spec.get("activeDeadlineMode") and spec.get("activeDeadlineSeconds") is None:
        report.warn(NO_DEADLINE, path.child("activeDeadlineMode"))


def validate_depends_on(job: Object, earlier: Names, path: Path, report: Report) -> None:
    """Validate dependsOn of a replicatedJob; `earlier` are the names before it in the list."""
    seen: set[str] = set()
    for index, dependency in enumerate(job.get("dependsOn") or ()):
        at = path.child("dependsOn").index(index)
        name = dependency.get("name") or ""
        if name == job.get("name"):
            report.add(DEPENDS_ON_SELF, at.child("name"))
        elif name not in earlier:
            hint = report.hints.did_you_mean(name, earlier)
            report.add(DEPENDS_ON_LATER, at.child("name"), name, hint=hint)
        elif name in seen:
            report.add(TWICE, at.child("name"), name)
        seen.add(name)
