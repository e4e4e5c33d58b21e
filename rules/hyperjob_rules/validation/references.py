"""Warnings about missing objects to which a HyperJob refers.

They are no errors, because the objects may be created later.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from hyperjob_core.api.field import METADATA, SPEC, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.names import INDEX
from hyperjob_rules.validation.needs import needed_by
from hyperjob_rules.validation.rules import WARNING, Report, rule
from hyperjob_rules.validation.split import sub_jobs

MAX_NAMED: Final = 5
_RESERVED: Final = ("kube-", "karmada-")
"""How the namespaces begin that Karmada never copies, by default and always."""

CLUSTER_UNKNOWN = rule(
    "X8.cluster-unknown",
    WARNING,
    'there is no cluster "{name}" now{hint}',
    "clusterNames has a cluster that Karmada does not know",
    "correct the name; `kubectl get clusters` lists them",
)
CLUSTER_NOT_READY = rule(
    "X8.cluster-not-ready",
    WARNING,
    'cluster "{name}" is not ready now',
    "clusterNames has a cluster that is not ready",
    "see `kubectl describe cluster NAME`; other clusters are used unless clusterPolicy is Required",
)
QUEUE_UNKNOWN = rule(
    "X9.queue-unknown",
    WARNING,
    'there is no queue "{name}" now; the sub-jobs wait until there is{hint}',
    "the template names a queue that does not exist in the control plane",
    "create the queue, or correct the name",
)
QUEUE_CLOSED = rule(
    "V16.queue-closed",
    WARNING,
    'queue "{name}" is {state} now; Volcano takes no jobs into it',
    "the template names a queue that is not open",
    "open the queue, or use another",
)
QUEUE_PARENT = rule(
    "V16.queue-parent",
    WARNING,
    'queue "{name}" has queues below it; Volcano takes jobs only into leaf queues',
    "the template names a queue that has children",
    "use one of the queues below it",
)
PRIORITY_UNKNOWN = rule(
    "X9.priority-unknown",
    WARNING,
    'there is no PriorityClass "{name}" now{hint}',
    "the template names a priority class that does not exist in the control plane",
    "create it, or correct the name",
)
PRIORITY_KEPT = rule(
    "X9.priority-kept",
    WARNING,
    'no policy of Karmada copies PriorityClass "{name}" to the member clusters; a cluster that'
    " lacks it refuses the pods",
    "the template names a priority class that exists in the control plane alone",
    "run `hyperjob install` without `--skip priority-classes`, or create the class in each member",
)
OBJECT_UNKNOWN = rule(
    "X18",
    WARNING,
    'there is no {kind} "{name}" in the namespace now; the pods wait until there is{hint}',
    "the pods need an object that does not exist in the control plane",
    "create it there, so that it is sent to the member clusters with the sub-jobs",
)
BOUND = rule(
    "X18.bound-claim",
    WARNING,
    'PersistentVolumeClaim "{claim}" names PersistentVolume "{volume}": Karmada copies the claim'
    " alone, and in a member without that PersistentVolume the pods wait",
    "the pods need a claim that binds to a PersistentVolume by name",
    "create the PersistentVolume in each member, or leave volumeName out",
)
NAMESPACE = rule(
    "X9.namespace",
    WARNING,
    'Karmada copies nothing of namespace "{name}" to the member clusters: no sub-job starts',
    "Karmada reserves the namespace, or its label namespace.karmada.io/skip-auto-propagation is"
    " true",
    "create the HyperJob in another namespace, or remove the label",
)
JOB_TAKEN = rule(
    "X4.job-taken",
    WARNING,
    'sub-job "{name}" exists already and does not belong to this HyperJob',
    "a vcjob or PropagationPolicy with the name of a sub-job has another owner",
    "rename the HyperJob or the replicatedJob, or delete the other object",
)
BATCH_JOB_TAKEN = rule(
    "X5",
    WARNING,
    'a batch/v1 Job "{name}" exists; Karmada would use one binding for both',
    "a batch/v1 Job has the name of a sub-job, and both would have the same ResourceBinding",
    "rename one of the two",
)


def warn_references(hyperjob: Object, report: Report, *, context: Context) -> None:
    """Warn of objects that a HyperJob refers to and that do not exist, or are not ready."""
    metadata = hyperjob.get("metadata") or {}
    namespace = metadata.get("namespace") or ""
    if context.is_skipped or namespace.startswith(_RESERVED):
        report.warn(NAMESPACE, METADATA.child("namespace"), name=namespace)
    if context is NOTHING_KNOWN:
        return
    name = metadata.get("name")
    for index, job in enumerate((hyperjob.get("spec") or {}).get("replicatedJobs") or ()):
        path = SPEC.child("replicatedJobs").index(index)
        _warn_clusters(job, path, report, context)
        template, at = job.get("templateSpec") or {}, path.child("templateSpec")
        _warn_queue(template.get("queue") or "default", at.child("queue"), report, context)
        priority = template.get("priorityClassName")
        if priority:
            _warn_priority(priority, at.child("priorityClassName"), report, context)
        _warn_objects(template, at, report, context)
        if name:
            _warn_taken(name, job, path, report, context)


def _warn_clusters(job: Object, path: Path, report: Report, context: Context) -> None:
    if context.clusters is None:
        return
    for index, name in enumerate(job.get("clusterNames") or ()):
        at = path.child("clusterNames").index(index)
        cluster = context.clusters.get(name)
        if cluster is None:
            report.warn(
                CLUSTER_UNKNOWN,
                at,
                name=name,
                hint=report.hints.did_you_mean(name, context.clusters),
            )
        elif not cluster.ready:
            report.warn(CLUSTER_NOT_READY, at, name=name)


def _warn_queue(name: str, path: Path, report: Report, context: Context) -> None:
    if context.queues is None:
        return
    queue = context.queues.get(name)
    if queue is None:
        report.warn(
            QUEUE_UNKNOWN, path, name=name, hint=report.hints.did_you_mean(name, context.queues)
        )
        return
    if queue.state != "Open":
        report.warn(QUEUE_CLOSED, path, name=name, state=queue.state or "not known to be open")
    if queue.children:
        report.warn(QUEUE_PARENT, path, name=name)


def _warn_priority(name: str, path: Path, report: Report, context: Context) -> None:
    classes = context.priority_classes
    if classes is not None and name not in classes:
        hint = report.hints.did_you_mean(name, classes)
        report.warn(PRIORITY_UNKNOWN, path, name=name, hint=hint)
    elif name in context.kept_classes:
        report.warn(PRIORITY_KEPT, path, name=name)


def _warn_objects(template: Object, path: Path, report: Report, context: Context) -> None:
    known: dict[str, AbstractSet[str] | None] = {
        "ConfigMap": context.config_maps,
        "Secret": context.secrets,
        "PersistentVolumeClaim": context.persistent_volume_claims,
        "ServiceAccount": context.service_accounts,
    }
    seen: set[tuple[str, str]] = set()
    for kind, name, at in needed_by(template, path):
        names = known[kind]
        if names is None or (kind, name) in seen:
            continue
        if name in names:
            if kind == "PersistentVolumeClaim" and name in context.volumes:
                seen.add((kind, name))
                report.warn(BOUND, at, claim=name, volume=context.volumes[name])
            continue
        seen.add((kind, name))
        hint = report.hints.did_you_mean(name, names)
        report.warn(OBJECT_UNKNOWN, at, kind=kind, name=name, hint=hint)


def _warn_taken(hyperjob: str, job: Object, path: Path, report: Report, context: Context) -> None:
    """Warn of objects that have the names of sub-jobs, of the first few at most."""
    count = sub_jobs(job) or 1
    start = child_name(hyperjob, job.get("name") or "", 0).removesuffix("0")
    others = [name for name, owner in (context.vcjobs or {}).items() if owner != hyperjob]
    for rule_, names in ((JOB_TAKEN, others), (BATCH_JOB_TAKEN, context.batch_jobs or ())):
        taken = sorted(name for name in names if _is_child(name, start, count))
        for name in taken[:MAX_NAMED]:
            report.warn(rule_, path.child("name"), name=name)


def _is_child(name: str, start: str, count: int) -> bool:
    """Return whether a name is that of a sub-job: `start` and an index below `count`."""
    index = name.removeprefix(start)
    return name.startswith(start) and bool(INDEX.fullmatch(index)) and int(index) < count
