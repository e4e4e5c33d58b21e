"""Names of a HyperJob, its sub-jobs, Services and Pods, and of objects to which it refers.

Volcano checks pod names with the index of the task instead of that of the pod, and does not check
Services: without these rules a name that is too long fails much later, in a member cluster. A
missing object is a warning and no error, because it may be created later.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, Self

from hyperjob_core.api import formats
from hyperjob_core.api.field import METADATA, SPEC, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name, task_name
from hyperjob_core.api.plugins import have_hosts
from hyperjob_rules.validation.context import (
    NOTHING_KNOWN,
    Context,
    Reference,
    needed_by,
    needed_for_checkpoints,
    pods_of,
)
from hyperjob_rules.validation.forms import check, task_names, tasks_of
from hyperjob_rules.validation.rules import Report, bounded
from hyperjob_rules.validation.split import JobSize, largest_task

MAX_NAME: Final = 63
GENERATED: Final = 5
MAX_BASE: Final = MAX_NAME - GENERATED

bounded("X3.too-long", most=MAX_NAME)
bounded("V11.job-too-long", most=MAX_NAME)
bounded("X1.pod-too-long", most=MAX_NAME)

INDEX: Final = re.compile("0|[1-9][0-9]{0,5}")
"""The index of a sub-job, as its name ends with it."""
_SERVICE: Final = re.compile("[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


class OwnName(NamedTuple):
    """The name that the HyperJob has or will get, and the field with it."""

    value: str
    path: Path
    written: str

    @classmethod
    def of(cls, metadata: Object) -> Self | None:
        """Return the name; a name to be generated has its full length."""
        path = METADATA
        if metadata.get("name"):
            return cls(metadata["name"], path.child("name"), metadata["name"])
        base = metadata.get("generateName")
        if not base:
            return None
        return cls(base[:MAX_BASE] + "x" * GENERATED, path.child("generateName"), base)


def validate_names(hyperjob: Object, sizes: Sequence[JobSize], report: Report) -> None:
    """Validate the HyperJob's name and all names made from it."""
    own = OwnName.of(hyperjob.get("metadata") or {})
    if own is None:
        report.add("X3.missing", METADATA.child("name"))
        return
    check(formats.dns1123_subdomain, own.value, own.path, report)
    if len(own.value) > MAX_NAME:
        report.add("X3.too-long", own.path, own.written)
        return
    path = SPEC.child("replicatedJobs")
    jobs: list[Object] = (hyperjob.get("spec") or {}).get("replicatedJobs") or []
    last = [_last_index(job, size.sub_jobs) for job, size in zip(jobs, sizes, strict=True)]
    for index, job in enumerate(jobs):
        if job.get("name"):
            _validate_composed(own, job, last[index], path.index(index), report)
    shared = have_hosts((hyperjob.get("spec") or {}).get("plugins") or {})
    _validate_service(own, jobs, report, shared=shared)
    _validate_distinct(jobs, last, path, report)


def _last_index(job: Object, count: int | None) -> int:
    """Return the highest index of a sub-job; `count` is None for an automatic split."""
    if count is None:
        # An automatic split has at most one sub-job per accelerator.
        count = (job.get("splitPolicy") or {}).get("accelerators") or 1
    return max(count, 1) - 1


def _validate_composed(own: OwnName, job: Object, last: int, path: Path, report: Report) -> None:
    """Check the longest names of one replicatedJob's sub-jobs and their pods."""
    name = child_name(own.value, job["name"], last)
    if len(name) > MAX_NAME:
        report.add(
            "V11.job-too-long",
            path.child("name"),
            job["name"],
            name=name,
            length=len(name),
            excess=len(name) - MAX_NAME,
        )
        return
    longest, longest_index = "", 0
    resized, most = largest_task(job) or (-1, 0)
    for index, task in enumerate(tasks_of(job)):
        pods = task.get("replicas") or 1
        if index == resized and most > pods:
            pods = most
        pod = f"{name}-{task_name(task, index)}-{pods - 1 if pods > 0 else 0}"
        if len(pod) > len(longest):
            longest, longest_index = pod, index
    if len(longest) > MAX_NAME:
        excess = len(longest) - MAX_NAME
        written = longest[len(name) + 1 :].rpartition("-")[0]
        at = path.child("templateSpec", "tasks").index(longest_index).child("name")
        report.add("X1.pod-too-long", at, written, name=longest, length=len(longest), excess=excess)


def _validate_service(own: OwnName, jobs: list[Object], report: Report, *, shared: bool) -> None:
    """Check that the names of Services are DNS labels, if there will be Services.

    `shared`: plugins of the HyperJob add a Service to every sub-job.
    """
    for job in jobs:
        plugins = (job.get("templateSpec") or {}).get("plugins") or {}
        if not shared and "svc" not in plugins:
            continue
        name = child_name(own.value, job.get("name") or "", 0)
        if len(name) > MAX_NAME or _SERVICE.fullmatch(name):
            continue
        messages = formats.dns1035_label(name)
        # An error in the part after the HyperJob's name is reported at the replicatedJob.
        if messages and formats.dns1035_label(f"{own.value}-0"):
            report.add("X2.service", own.path, own.written, name=name, message=messages[0])
            return


def _validate_distinct(jobs: list[Object], last: Sequence[int], path: Path, report: Report) -> None:
    """Check that no two pods of the HyperJob would have one name."""
    # Two replicatedJobs with one name are refused elsewhere: the first counts here.
    by_name = {job.get("name"): index for index, job in reversed(list(enumerate(jobs)))}
    known: dict[int, Pods] = {}
    for index, longer in enumerate(jobs):
        name = longer.get("name") or ""
        for start, rest, least in _as_sub_job(name):
            shorter = by_name.get(start)
            if shorter is None:
                continue
            if shorter not in known:
                known[shorter] = _pods_of(jobs[shorter])
            pods = known[shorter]
            task = _clashing_task(pods, longer, rest, last[index]) if least <= last[shorter] else ""
            if task:
                report.add(
                    "X4.same-pods", path.index(index).child("name"), name, task=task, other=start
                )
                break


def _as_sub_job(name: str) -> Iterator[tuple[str, str, int]]:
    """Yield the ways to read a name as `START-INDEX` or `START-INDEX-REST`: start, rest, index."""
    if len(name) > MAX_NAME:
        return
    parts = name.split("-")
    for position in range(1, len(parts)):
        if INDEX.fullmatch(parts[position]):
            start, rest = "-".join(parts[:position]), "-".join(parts[position + 1 :])
            yield start, rest, int(parts[position])


Pods = Mapping[tuple[str, str], int]
"""The names of tasks parsed as `PREFIX-INDEX-TASK`: the least index by (prefix, task)."""


def _pods_of(job: Object) -> Pods:
    """Return the names of the tasks of a replicatedJob in the form of `Pods`."""
    found: dict[tuple[str, str], int] = {}
    for name in task_names(tasks_of(job)):
        parts = name.split("-") if len(name) <= MAX_NAME else []
        for position in range(len(parts) - 1):
            if INDEX.fullmatch(parts[position]):
                key = "-".join(parts[:position]), "-".join(parts[position + 1 :])
                number = int(parts[position])
                found[key] = min(found.get(key, number), number)
    return found


def _clashing_task(shorter: Pods, longer: Object, rest: str, last: int) -> str:
    """Return the task of `longer` some of whose pods have names of `shorter`; empty if none."""
    names = task_names(tasks_of(longer)) if shorter else ()
    return next((task for task in names if shorter.get((rest, task), last + 1) <= last), "")


_RESERVED: Final = ("kube-", "karmada-")
"""How the namespaces begin that Karmada never copies, by default and always."""


def warn_references(hyperjob: Object, report: Report, *, context: Context) -> None:
    """Warn of objects that a HyperJob refers to and that do not exist, or are not ready."""
    metadata = hyperjob.get("metadata") or {}
    namespace = metadata.get("namespace") or ""
    if context.is_skipped or namespace.startswith(_RESERVED):
        report.warn("X9.namespace", METADATA.child("namespace"), name=namespace)
    if context is NOTHING_KNOWN:
        return
    for index, job in enumerate((hyperjob.get("spec") or {}).get("replicatedJobs") or ()):
        path = SPEC.child("replicatedJobs").index(index)
        _warn_clusters(job, path, report, context)
        template, at = job.get("templateSpec") or {}, path.child("templateSpec")
        _warn_queue(template.get("queue") or "default", at.child("queue"), report, context)
        for owner, place in ((template, at), *pods_of(template, at)):
            if priority := owner.get("priorityClassName"):
                _warn_priority(priority, place.child("priorityClassName"), report, context)
        _warn_objects(needed_by(template, at), report, context)
    _warn_objects(needed_for_checkpoints(hyperjob), report, context)


def _warn_clusters(job: Object, path: Path, report: Report, context: Context) -> None:
    if context.clusters is None:
        return
    for index, name in enumerate(job.get("clusterNames") or ()):
        at = path.child("clusterNames").index(index)
        cluster = context.clusters.get(name)
        if cluster is None:
            report.warn(
                "X8.cluster-unknown",
                at,
                name=name,
                hint=report.hints.did_you_mean(name, context.clusters),
            )
        elif not cluster.ready:
            report.warn("X8.cluster-not-ready", at, name=name)


def _warn_queue(name: str, path: Path, report: Report, context: Context) -> None:
    if context.queues is None:
        return
    queue = context.queues.get(name)
    if queue is None:
        report.warn(
            "X9.queue-unknown",
            path,
            name=name,
            hint=report.hints.did_you_mean(name, context.queues),
        )
        return
    if queue.state != "Open":
        report.warn(
            "V16.queue-closed", path, name=name, state=queue.state or "not known to be open"
        )
    if queue.children:
        report.warn("V16.queue-parent", path, name=name)


def _warn_priority(name: str, path: Path, report: Report, context: Context) -> None:
    classes = context.priority_classes
    if classes is not None and name not in classes:
        hint = report.hints.did_you_mean(name, classes)
        report.warn("X9.priority-unknown", path, name=name, hint=hint)
    elif name in context.kept_classes:
        report.warn("X9.priority-kept", path, name=name)


def _warn_objects(needed: Iterable[Reference], report: Report, context: Context) -> None:
    known: dict[str, AbstractSet[str] | None] = {
        "ConfigMap": context.config_maps,
        "Secret": context.secrets,
        "PersistentVolumeClaim": context.persistent_volume_claims,
        "ServiceAccount": context.service_accounts,
    }
    seen: set[tuple[str, str]] = set()
    for kind, name, at in needed:
        names = known[kind]
        if names is None or (kind, name) in seen:
            continue
        if name in names:
            if kind == "PersistentVolumeClaim" and name in context.volumes:
                seen.add((kind, name))
                report.warn("X18.bound-claim", at, claim=name, volume=context.volumes[name])
            continue
        seen.add((kind, name))
        hint = report.hints.did_you_mean(name, names)
        report.warn("X18.unknown-object", at, kind=kind, name=name, hint=hint)
