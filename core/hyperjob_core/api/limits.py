"""The limits of a HyperJob's size: far above any real one, and small enough for the memory."""

from typing import Final

from hyperjob_core.api.meta import Object

MAX_SUB_JOBS: Final = 5_000
"""Sub-jobs of all replicatedJobs together."""
MAX_PODS: Final = 200_000
"""Pods of all sub-jobs together."""
MAX_REPLICATED_JOBS: Final = 1_000
MAX_COMBINATIONS: Final = 16
"""Combinations of the alternatives of all replicatedJobs: the queue tries each of them."""
MAX_TASKS: Final = 256
"""Tasks of one template."""
MAX_ALL_TASKS: Final = 5_000
"""Tasks of all templates together."""
MAX_SPEC_BYTES: Final = 1_572_864
"""Bytes of a spec as JSON: more than etcd stores of a whole object by default."""

MAX_ALL_BYTES: Final = 32 * 1024 * 1024
"""Bytes of the templates of all sub-jobs together, as JSON: etcd stores about twice as many."""

MAX_METADATA_KEYS: Final = 10_000
"""Labels of one HyperJob, and annotations."""


def count_tasks(spec: object) -> int:
    """Return the number of tasks of all templates, or of replicatedJobs if these are more."""
    jobs = spec.get("replicatedJobs") if isinstance(spec, dict) else None
    if not isinstance(jobs, list):
        return 0
    return max(len(jobs), sum([len(_template_tasks(job)) for job in jobs if isinstance(job, dict)]))


def _template_tasks(job: Object) -> list[object]:
    template = job.get("templateSpec")
    tasks = template.get("tasks") if isinstance(template, dict) else None
    return tasks if isinstance(tasks, list) else []
