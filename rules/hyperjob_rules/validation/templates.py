"""The tasks of a replicatedJob's vcjob template, for rules across several fields."""

from collections.abc import Sequence

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name


def tasks_of(job: Object) -> Sequence[Object]:
    """Return the tasks of a replicatedJob; none without a template."""
    return (job.get("templateSpec") or {}).get("tasks") or ()


def task_names(tasks: Sequence[Object]) -> list[str]:
    """Return the names of all tasks of a template, in order."""
    return [task_name(task, index) for index, task in enumerate(tasks)]


def pod_spec_of(task: Object) -> Object:
    """Return the spec of a task's pods; empty without a template."""
    return (task.get("template") or {}).get("spec") or {}
