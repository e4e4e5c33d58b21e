"""Validation of failure policy, success policy, checkpoints and dependencies."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hyperjob_core.api.field import SPEC, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_core.api.stops import DEFAULT_GRACE_SECONDS, DEFAULT_PATH, VOLUME_NAME
from hyperjob_rules.validation.forms import pod_spec_of, tasks_of
from hyperjob_rules.validation.rules import Report, bounded
from hyperjob_rules.validation.split import sub_jobs

COUNTED: Final = frozenset({"RestartHyperJob", "RestartJob", "MigrateJob"})
FAILED_PHASES: Final = ("Failed", "Aborted", "Terminated")

Names = Mapping[str, int]


def validate_on_no_progress(spec: Object, path: Path, report: Report) -> None:
    """Warn about restarts of stalled programs that maxRestarts does not allow."""
    allowed = (spec.get("failurePolicy") or {}).get("maxRestarts")
    if spec.get("onNoProgress") in ("Restart", "Migrate") and not allowed:
        report.warn("L22.no-restarts", path.child("onNoProgress"))


def validate_failure_policy(policy: Object, names: Names, path: Path, report: Report) -> None:
    """Validate the failure policy; `names` are those of the replicatedJobs."""
    rules: list[Object] = policy.get("rules") or []
    for index, each in enumerate(rules):
        at = path.child("rules").index(index)
        _validate_rule(each, names, at, report)
        for earlier in range(index):
            if _covers(rules[earlier], each):
                report.add("L5.shadowed", at, each.get("action") or "", earlier=earlier)
                break
    if not policy.get("maxRestarts") and any(each.get("action") in COUNTED for each in rules):
        report.warn("L8.no-restarts", path.child("maxRestarts"))


def _validate_rule(each: Object, names: Names, path: Path, report: Report) -> None:
    """Validate one rule of the failure policy by itself."""
    phases = each.get("onJobPhases") or []
    seen: set[str] = set()
    for index, phase in enumerate(phases):
        at = path.child("onJobPhases").index(index)
        if phase in seen:
            report.add("L7.twice", at, phase)
        seen.add(phase)
    if not phases and each.get("onClusterLost") is False:
        report.add("L4.never", path, each.get("action") or "")
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
            report.missing("L6.unknown-job", at, target, names)
        elif target in seen:
            report.add("L7.twice", at, target)
        seen.add(target)


def validate_deadline(spec: Object, path: Path, report: Report) -> None:
    """Warn about a mode of the deadline without a deadline."""
    if spec.get("activeDeadlineMode") and spec.get("activeDeadlineSeconds") is None:
        report.warn("L11.no-deadline", path.child("activeDeadlineMode"))


def validate_depends_on(job: Object, earlier: Names, path: Path, report: Report) -> None:
    """Validate dependsOn of a replicatedJob; `earlier` are the names before it in the list."""
    seen: set[str] = set()
    for index, dependency in enumerate(job.get("dependsOn") or ()):
        at = path.child("dependsOn").index(index)
        name = dependency.get("name") or ""
        if name == job.get("name"):
            report.add("L9.on-itself", at.child("name"))
        elif name not in earlier:
            hint = report.hints.did_you_mean(name, earlier)
            report.add("L10.on-a-later-one", at.child("name"), name, hint=hint)
        elif name in seen:
            report.add("L7.twice", at.child("name"), name)
        seen.add(name)


bounded("L19.name-taken", volume_name=VOLUME_NAME)

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+")


def validate_checkpoint(spec: Object, report: Report) -> None:
    """Validate spec.checkpoint, and the volumes and grace periods of the templates against it."""
    checkpoint: Object = spec["checkpoint"]
    path = SPEC.child("checkpoint")
    directory, claim = checkpoint.get("directory"), checkpoint.get("persistentVolumeClaim")
    if not directory and not claim:
        report.add("L19.no-place", path)
    if directory and claim:
        report.add("L19.two-places", path.child("persistentVolumeClaim"))
    if checkpoint.get("path") and not claim:
        report.add("L19.path-alone", path.child("path"))
    is_url = bool(directory and _URL.fullmatch(directory))
    if directory and not is_url and not _is_absolute(directory):
        or_url = ", or a URL such as s3://bucket/folder"
        report.add("L19.relative", path.child("directory"), directory, or_url=or_url)
    if checkpoint.get("path") and not _is_absolute(checkpoint["path"]):
        report.add("L19.relative", path.child("path"), checkpoint["path"], or_url="")
    if "env" not in (spec.get("plugins") or {}):
        report.warn("L19.not-told", path)
    _warn_of_graces(spec, checkpoint.get("gracePeriodSeconds"), report)
    if claim and not directory:
        _validate_mount(spec, checkpoint.get("path") or DEFAULT_PATH, path, report)
        if _is_spread(spec):
            report.warn("L19.not-shared", path.child("persistentVolumeClaim"), claim=claim)
    elif directory and not is_url:
        _warn_of_storage(spec, directory, path.child("directory"), report)


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and ":" not in path and ".." not in path.split("/")


def _is_spread(spec: Object) -> bool:
    """Return whether the sub-jobs may run in several clusters at a time."""
    counts = [sub_jobs(job) for job in spec.get("replicatedJobs") or ()]
    return spec.get("maxDomains") != 1 and (None in counts or sum(c or 0 for c in counts) > 1)


def _warn_of_graces(spec: Object, grace: int | None, report: Report) -> None:
    wanted = grace or DEFAULT_GRACE_SECONDS
    for _, _, pod, at in _pods(spec):
        own = pod.get("terminationGracePeriodSeconds")
        if own is not None and own < wanted:
            where = at.child("terminationGracePeriodSeconds")
            report.warn("L19.short-grace", where, own=own, grace=wanted)


def _validate_mount(spec: Object, mount_path: str, path: Path, report: Report) -> None:
    """Check that the mount path and the volume name of the claim are free in the templates."""
    for _, task, pod, at in _pods(spec):
        for index, volume in enumerate(pod.get("volumes") or ()):
            if volume.get("name") == VOLUME_NAME:
                report.add("L19.name-taken", at.child("volumes").index(index).child("name"))
        for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
            mounts = container.get("volumeMounts") or ()
            if any(_normal(each.get("mountPath")) == _normal(mount_path) for each in mounts):
                name = container.get("name") or ""
                report.add("L19.taken", path.child("path"), mount_path, container=name, task=task)
                return


def _warn_of_storage(spec: Object, directory: str, path: Path, report: Report) -> None:
    """Warn of the first container whose volume at the directory is local to its node or pod."""
    for job, task, pod, _ in _pods(spec):
        shared = {each.get("mountPath"): each for each in job.get("volumes") or ()}
        volumes = {each.get("name"): each for each in pod.get("volumes") or ()}
        for container in pod.get("containers") or ():
            mounts = {
                each.get("mountPath"): volumes.get(each.get("name")) or {}
                for each in container.get("volumeMounts") or ()
            }
            volume = _holding({**shared, **mounts}, directory)
            name = container.get("name") or ""
            what, owner = _kind(volume)
            if what:
                report.warn("L19.not-kept", path, what=what, owner=owner, container=name, task=task)
                return
            claim = _claim_of(volume or {})
            if claim and _is_spread(spec):
                report.warn("L19.not-shared", path, claim=claim)
                return


def _kind(volume: Object | None) -> tuple[str, str]:
    """Return the type of a volume that does not keep checkpoints, and the owner of its lifetime."""
    if volume is None:
        return "in no volume", "the container"
    if "emptyDir" in volume or "ephemeral" in volume:
        return "an emptyDir volume" if "emptyDir" in volume else "an ephemeral volume", "the pod"
    if "volumeClaim" in volume:
        return "a claim of Volcano", "the run of its sub-job"
    return ("a hostPath volume", "the node") if "hostPath" in volume else ("", "")


def _claim_of(volume: Object) -> str:
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    return str(claim or volume.get("volumeClaimName") or "")


def _holding(mounts: Object, directory: str) -> Object | None:
    """Return the volume that is mounted at a directory, or nearest above it."""
    wanted = _normal(directory)
    found = [
        path
        for path in mounts
        if path and (wanted + "/").startswith(_normal(path).rstrip("/") + "/")
    ]
    return mounts[max(found, key=len)] if found else None


def _normal(path: object) -> str:
    return "/" + str(path or "").strip("/")


def _pods(spec: Object) -> Iterator[tuple[Object, str, Object, Path]]:
    """Yield the vcjob template, task name, pod spec and its path, of every task."""
    for index, job in enumerate(spec.get("replicatedJobs") or ()):
        template = job.get("templateSpec") or {}
        at = SPEC.child("replicatedJobs").index(index).child("templateSpec", "tasks")
        for number, task in enumerate(tasks_of(job)):
            name, pod = task_name(task, number), pod_spec_of(task)
            yield template, name, pod, at.index(number).child("template", "spec")
