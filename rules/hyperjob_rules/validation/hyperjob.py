"""Validation of a HyperJob as a whole: its parts, and the rules across them."""

from collections.abc import Sequence

from hyperjob_core.api.field import METADATA, SPEC, Path
from hyperjob_core.api.limits import MAX_PODS, MAX_SUB_JOBS
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.bounds import validate_bounds
from hyperjob_rules.validation.checkpoint import validate_checkpoint
from hyperjob_rules.validation.forms import validate_annotations, validate_labels
from hyperjob_rules.validation.hyperplugins import validate_hyperjob_plugins
from hyperjob_rules.validation.lifecycle import (
    validate_deadline,
    validate_depends_on,
    validate_failure_policy,
    validate_on_no_progress,
    validate_targets,
)
from hyperjob_rules.validation.names import validate_names
from hyperjob_rules.validation.quorum import validate_quorum
from hyperjob_rules.validation.replicatedjobs import validate_replicated_job
from hyperjob_rules.validation.requests import validate_requests
from hyperjob_rules.validation.rules import DUPLICATE, INVALID, Report, rule
from hyperjob_rules.validation.split import JobSize, size_of

NAME_TWICE = rule(
    "X4.name-twice",
    DUPLICATE,
    "",
    "two replicatedJobs have the same name, and so would their sub-jobs",
    "rename one of them",
)
MIN_AVAILABLE = rule(
    "X6.min-available",
    INVALID,
    "must be between 0 and the number of sub-jobs ({count})",
    "more sub-jobs must start together than there are, so none ever starts",
    "lower minAvailable, or raise the replicas of a replicatedJob",
)
TOO_MANY_PODS = rule(
    "X6.too-many-pods",
    INVALID,
    f"must be at most {MAX_PODS} pods in all sub-jobs together",
    "the controller does not run so many pods for one HyperJob",
    "make several HyperJobs",
)
TOO_MANY_JOBS = rule(
    "X6.too-many-jobs",
    INVALID,
    f"must be at most {MAX_SUB_JOBS} sub-jobs in all replicatedJobs together",
    "the status of more sub-jobs does not fit into one object",
    "make fewer and larger sub-jobs, or several HyperJobs",
)


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
            report.add(NAME_TWICE, at.child("name"), name)
        validate_replicated_job(job, at, report, max_domains=spec.get("maxDomains"))
        validate_depends_on(job, names, at, report)
        names.setdefault(name, index)
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
    path = METADATA
    if metadata.get("labels"):
        validate_labels(metadata["labels"], path.child("labels"), report)
    if metadata.get("annotations"):
        validate_annotations(metadata["annotations"], path.child("annotations"), report)


def _validate_numbers(spec: Object, sizes: Sequence[JobSize], path: Path, report: Report) -> None:
    """Check the sums over all replicatedJobs; an automatic split counts no sub-jobs here."""
    total = sum(size.sub_jobs or 0 for size in sizes)
    if total > MAX_SUB_JOBS:
        report.add(TOO_MANY_JOBS, path.child("replicatedJobs"), total)
    pods = sum(size.pods for size in sizes)
    if pods > MAX_PODS:
        report.add(TOO_MANY_PODS, path.child("replicatedJobs"), pods)
    available = spec.get("minAvailable")
    known = all(size.sub_jobs is not None for size in sizes)
    if available is not None and known and available > total:
        report.add(MIN_AVAILABLE, path.child("minAvailable"), available, count=total)
