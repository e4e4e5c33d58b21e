"""Bounds of a HyperJob: its own size, and what its sub-jobs take in etcd, in sums and in time.

The size comes first: the time of all other rules depends on it.
"""

from collections.abc import Sequence

from hyperjob_core.api.defaults import complete_template
from hyperjob_core.api.field import METADATA, SPEC, Path
from hyperjob_core.api.limits import (
    MAX_ALL_BYTES,
    MAX_ALL_TASKS,
    MAX_METADATA_KEYS,
    MAX_SPEC_BYTES,
    MAX_SUB_JOBS,
    count_tasks,
)
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import MAX, NANO
from hyperjob_rules.validation.forms import pod_spec_of, tasks_of, try_parse_amount, written
from hyperjob_rules.validation.rules import Report, bounded
from hyperjob_rules.validation.split import MANY_CLUSTERS, JobSize

bounded("X6.too-many-tasks", most=MAX_ALL_TASKS)
bounded("X6.too-large", most=MAX_SPEC_BYTES)


bounded("X6.too-many-keys", most=MAX_METADATA_KEYS)


def validate_size(raw: Object, report: Report, *, at_most: int | None = None) -> bool:
    """Validate the size of a HyperJob; return whether its parts may be validated.

    `at_most` is an upper bound of its size in bytes, if known.
    """
    spec = raw.get("spec")
    if (tasks := count_tasks(spec)) > MAX_ALL_TASKS:
        report.add("X6.too-many-tasks", SPEC.child("replicatedJobs"), tasks)
    elif at_most is None or at_most > MAX_SPEC_BYTES:
        for path, part in ((SPEC, spec), (METADATA, raw.get("metadata"))):
            if len(written(part)) > MAX_SPEC_BYTES:
                report.add("X6.too-large", path)
    metadata = raw.get("metadata")
    for field in ("labels", "annotations"):
        keys = metadata.get(field) if isinstance(metadata, dict) else None
        if isinstance(keys, dict) and len(keys) > MAX_METADATA_KEYS:
            report.add("X6.too-many-keys", METADATA.child(field), len(keys))
    return not report.refusals


bounded("X19.copies", most=MAX_ALL_BYTES)
bounded("X19.sum", most=MAX // NANO)


def validate_bounds(
    spec: Object, sizes: Sequence[JobSize], report: Report, *, most_grace: int
) -> None:
    """Validate what the sub-jobs take together; `most_grace` is in seconds."""
    at = SPEC.child("replicatedJobs")
    jobs: list[Object] = spec.get("replicatedJobs") or []
    _validate_copies(jobs, sizes, at, report, max_domains=spec.get("maxDomains"))
    pods_by_amount: dict[tuple[str, str | int], int] = {}
    for index, (job, size) in enumerate(zip(jobs, sizes, strict=True)):
        for number, (task, pods) in enumerate(zip(tasks_of(job), size.pods_of_tasks, strict=True)):
            pod = pod_spec_of(task)
            _add_requests(pods_by_amount, pod, pods=pods)
            grace = pod.get("terminationGracePeriodSeconds")
            if grace is not None and grace > most_grace:
                tasks_at = at.index(index).child("templateSpec", "tasks")
                path = tasks_at.index(number).child("template", "spec")
                report.add(
                    "X19.grace", path.child("terminationGracePeriodSeconds"), grace, most=most_grace
                )
    for name, total in sorted(_sums(pods_by_amount).items()):
        if total > MAX:
            report.add("X19.sum", at, total // NANO, name=name)
    grace = (spec.get("checkpoint") or {}).get("gracePeriodSeconds")
    if grace is not None and grace > most_grace:
        report.add(
            "X19.grace", SPEC.child("checkpoint", "gracePeriodSeconds"), grace, most=most_grace
        )


def _validate_copies(
    jobs: list[Object],
    sizes: Sequence[JobSize],
    path: Path,
    report: Report,
    *,
    max_domains: int | None,
) -> None:
    """Check the bytes in etcd of all sub-jobs together; the error is at the largest replicatedJob.

    `max_domains` bounds an automatic split, whose number of sub-jobs is unknown.
    """
    counts = [
        _most_parts(job, max_domains) if size.sub_jobs is None else size.sub_jobs
        for job, size in zip(jobs, sizes, strict=True)
    ]
    most = max(counts, default=0)
    # More sub-jobs are an error of their own; few copies of the largest spec are small enough.
    if most > MAX_SUB_JOBS or most * MAX_SPEC_BYTES <= MAX_ALL_BYTES:
        return
    total, largest = 0, (0, 0, 0, 0)
    for index, (job, count) in enumerate(zip(jobs, counts, strict=True)):
        template = job.get("templateSpec")
        whole = template and complete_template(template)
        each = len(written(whole)) + len(written(job.get("templateMetadata")))
        total += count * each
        largest = max(largest, (count * each, index, count, each))
    if total > MAX_ALL_BYTES:
        _, index, count, each = largest
        at = path.index(index).child("templateSpec")
        report.add("X19.copies", at, count=count, each=each, total=count * each)


def _most_parts(job: Object, max_domains: int | None) -> int:
    """Return the most sub-jobs of an automatic split, each with a copy of its template."""
    accelerators = (job.get("splitPolicy") or {}).get("accelerators") or 1
    return min(max_domains or MANY_CLUSTERS, accelerators)


def _add_requests(
    pods_by_amount: dict[tuple[str, str | int], int], pod: Object, *, pods: int
) -> None:
    """Count so many pods for each amount of a resource that a container of the pod requests.

    The sum over them is an upper bound: init containers count like the others.
    """
    lists = [pod.get("overhead")]
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        if resources := container.get("resources"):
            amounts, limits = resources.get("requests"), resources.get("limits")
            lists.append({**limits, **amounts} if limits and amounts else amounts or limits)
    for amounts in lists:
        if amounts:
            for each in amounts.items():
                pods_by_amount[each] = pods_by_amount.get(each, 0) + pods


def _sums(pods_by_amount: dict[tuple[str, str | int], int]) -> dict[str, int]:
    """Return the sum of each resource over all pods, in nano-units."""
    sums: dict[str, int] = {}
    for (name, value), pods in pods_by_amount.items():
        if value is not None:
            nano = try_parse_amount(value).nano
            # An amount that is negative or too large by itself has an error of its own.
            if 0 < nano <= MAX:
                sums[name] = sums.get(name, 0) + pods * nano
    return sums
