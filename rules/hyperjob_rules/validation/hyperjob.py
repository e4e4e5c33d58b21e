"""Validation of a HyperJob as a whole: its parts, its replicatedJobs, and the rules across them.

Its annotations may request a restart or a move of sub-jobs. `spec.quorum` is how many sub-jobs must
train; some plugins need all of them.
"""

from collections.abc import Sequence
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import METADATA, SPEC, Path
from hyperjob_core.api.limits import MAX_PODS, MAX_SUB_JOBS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    GROUP,
    LABEL_HYPERJOB,
    LABEL_REPLICATED_JOB,
    MAX_TOKEN,
    MIGRATE_REQUEST,
    RESTART_REQUEST,
    domain_of,
    may_be_given,
)
from hyperjob_core.api.plugins import PLUGINS, lighthouse_of
from hyperjob_core.api.wire import at, mapping
from hyperjob_rules.validation.alternatives import validate_sizes
from hyperjob_rules.validation.bounds import validate_bounds
from hyperjob_rules.validation.forms import (
    check,
    task_names,
    tasks_of,
    validate_annotations,
    validate_labels,
)
from hyperjob_rules.validation.hyperplugins import validate_hyperjob_plugins
from hyperjob_rules.validation.job import validate_job_spec
from hyperjob_rules.validation.lifecycle import (
    validate_checkpoint,
    validate_deadline,
    validate_depends_on,
    validate_failure_policy,
    validate_on_no_progress,
    validate_targets,
)
from hyperjob_rules.validation.names import validate_names
from hyperjob_rules.validation.rules import Report, bounded
from hyperjob_rules.validation.split import JobSize, is_elastic, size_of, sub_jobs, validate_split

REQUESTS: Final = (RESTART_REQUEST, MIGRATE_REQUEST)

bounded("X16.token", most=MAX_TOKEN)


def validate_requests(hyperjob: Object, report: Report, *, before: Object | None = None) -> None:
    """Validate the tokens of requests; a token of the stored object, `before`, is not an error."""
    given, old = _annotations(hyperjob), _annotations(before or {})
    for key in REQUESTS:
        text = given.get(key)
        if isinstance(text, str) and text != old.get(key):
            words = text.split(maxsplit=1)
            if words and len(words[0]) > MAX_TOKEN:
                report.add("X16.token", METADATA.child("annotations").key(key))


def _annotations(hyperjob: Object) -> Object:
    return mapping(at(hyperjob, "metadata", "annotations"))


def validate_quorum(spec: Object, report: Report) -> None:
    """Validate spec.quorum, also against plugins, minAvailable and the failure policy."""
    quorum, plugins = spec.get("quorum"), spec.get("plugins") or {}
    if quorum is None:
        if "torchft" in plugins:
            report.warn("L20.no-quorum", SPEC.child("plugins").key("torchft"))
        return
    path = SPEC.child("quorum")
    task = lighthouse_of(plugins)
    jobs = spec.get("replicatedJobs") or []
    if task:  # those with nothing but the lighthouse do not train
        jobs = [job for job in jobs if not set(task_names(tasks_of(job))) <= {task}]
    counts = [sub_jobs(job) for job in jobs]
    total = sum(count or 0 for count in counts)
    if None not in counts and quorum > total:
        report.add("L20.too-many", path, quorum, count=total)
    available = spec.get("minAvailable")
    if available is not None and quorum > available:
        report.warn("L20.never-met", path, available=available)
    for name in sorted(plugins):
        if name in PLUGINS and PLUGINS[name].one_world:
            report.add("L20.one-world", SPEC.child("plugins").key(name))
    rules = (spec.get("failurePolicy") or {}).get("rules") or ()
    for index, each in enumerate(rules):
        if str(each.get("action") or "").startswith("RestartHyperJob"):
            at = SPEC.child("failurePolicy", "rules").index(index).child("action")
            report.warn("L20.restarts-all", at)


MAX_CLUSTER_NAME: Final = 48
_OWN: Final = (LABEL_HYPERJOB, LABEL_REPLICATED_JOB)
_OWN_DOMAIN: Final = f"{GROUP}/"
_CLAIM_DOMAINS: Final = ("propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/")

bounded("X8.cluster-length", most=MAX_CLUSTER_NAME)


def validate_replicated_job(
    job: Object, path: Path, report: Report, *, max_domains: int | None
) -> None:
    """Validate one replicatedJob without regard to the others."""
    _validate_clusters(job, path, report, max_domains=max_domains)
    metadata = job.get("templateMetadata")
    if metadata:
        _validate_template_metadata(metadata, path.child("templateMetadata"), report)
    validate_job_spec(job.get("templateSpec") or {}, path.child("templateSpec"), report)
    if job.get("splitPolicy"):
        validate_split(job, path, report, max_domains=max_domains)


def _validate_clusters(job: Object, path: Path, report: Report, *, max_domains: int | None) -> None:
    clusters = job.get("clusterNames") or []
    at = path.child("clusterNames")
    seen: set[str] = set()
    for index, cluster in enumerate(clusters):
        if cluster in seen:
            report.add("X8.cluster-twice", at.index(index), cluster)
        elif len(cluster) > MAX_CLUSTER_NAME:
            report.add("X8.cluster-length", at.index(index), cluster)
        else:
            check(formats.dns1123_label, cluster, at, report, index)
        seen.add(cluster)
    if job.get("clusterPolicy") == "Required":
        if not clusters:
            report.add("X8.no-clusters", at)
        elif max_domains is not None and 0 < max_domains < len(clusters):
            report.warn("X8.many-clusters", at, count=len(clusters), limit=max_domains)


def _validate_template_metadata(metadata: Object, path: Path, report: Report) -> None:
    """Refuse labels and annotations by which controllers act on a sub-job."""
    labels = metadata.get("labels") or {}
    validate_labels(labels, path.child("labels"), report)
    annotations = metadata.get("annotations") or {}
    validate_annotations(annotations, path.child("annotations"), report)
    for field, keys in (("labels", labels), ("annotations", annotations)):
        for key in keys:
            if key in _OWN or key.startswith(_OWN_DOMAIN):
                report.add("X3.own-label", path.child(field).key(key))
            elif key.startswith(_CLAIM_DOMAINS):
                report.add("X3.claim", path.child(field).key(key))
            elif not may_be_given(key):
                report.add("X3.foreign", path.child(field).key(key), domain=domain_of(key))


bounded("X6.too-many-pods", most=MAX_PODS)
bounded("X6.too-many-jobs", most=MAX_SUB_JOBS)


def validate_hyperjob(hyperjob: Object, report: Report, *, most_grace: int) -> None:
    """Validate a HyperJob whose shape is valid; `most_grace` is in seconds."""
    _validate_metadata(hyperjob.get("metadata") or {}, report)
    validate_requests(hyperjob, report)
    spec = hyperjob.get("spec") or {}
    path = SPEC
    jobs: list[Object] = spec.get("replicatedJobs") or []
    at_jobs = path.child("replicatedJobs")
    names: dict[str, int] = {}
    for index, job in enumerate(jobs):
        at = at_jobs.index(index)
        name = job.get("name") or ""
        if name and name in names:
            report.add("X4.name-twice", at.child("name"), name)
        validate_replicated_job(job, at, report, max_domains=spec.get("maxDomains"))
        validate_depends_on(job, names, at, report)
        names.setdefault(name, index)
    if any(map(is_elastic, jobs)):
        validate_sizes(spec, jobs, report)
    sizes = [size_of(job) for job in jobs]
    _validate_numbers(spec, sizes, path, report)
    validate_names(hyperjob, sizes, report)
    if spec.get("failurePolicy"):
        validate_failure_policy(spec["failurePolicy"], names, path.child("failurePolicy"), report)
    validate_on_no_progress(spec, path, report)
    if spec.get("successPolicy"):
        validate_targets(spec["successPolicy"], names, path.child("successPolicy"), report)
    if spec.get("checkpoint") is not None:
        validate_checkpoint(spec, report)
    validate_deadline(spec, path, report)
    validate_quorum(spec, report)
    if spec.get("plugins"):
        validate_hyperjob_plugins(
            spec["plugins"],
            jobs,
            path.child("plugins"),
            report,
            min_available=spec.get("minAvailable"),
        )
    validate_bounds(spec, sizes, report, most_grace=most_grace)


def _validate_metadata(metadata: Object, report: Report) -> None:
    if labels := metadata.get("labels"):
        validate_labels(labels, METADATA.child("labels"), report)
    if annotations := metadata.get("annotations"):
        validate_annotations(annotations, METADATA.child("annotations"), report)


def _validate_numbers(spec: Object, sizes: Sequence[JobSize], path: Path, report: Report) -> None:
    """Check the sums over all replicatedJobs; an automatic split counts no sub-jobs here."""
    total = sum(size.sub_jobs or 0 for size in sizes)
    if total > MAX_SUB_JOBS:
        report.add("X6.too-many-jobs", path.child("replicatedJobs"), total)
    pods = sum(size.pods for size in sizes)
    if pods > MAX_PODS:
        report.add("X6.too-many-pods", path.child("replicatedJobs"), pods)
    available = spec.get("minAvailable")
    known = all(size.sub_jobs is not None for size in sizes)
    if available is not None and known and available > total:
        report.add("X6.min-available", path.child("minAvailable"), available, count=total)
