"""What Volcano's webhooks make of a new vcjob, and what they refuse, in their own words.

Checked is what a sub-job can still meet in a member: its queue, and which of its fields may change.
"""

from copy import deepcopy
from typing import Final

from hyperjob_core.api.meta import Object

_MAX_RETRY: Final = 3
_IMMUTABLE: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)
_SIZES: Final = frozenset({"minAvailable", "replicas", "priorityClassName"})


def default_job(job: Object) -> Object:
    """Return a new vcjob with Volcano's defaults; it never defaults a changed one."""
    job = deepcopy(job)
    spec: Object = job.setdefault("spec", {})
    tasks: list[Object] = spec.get("tasks") or []
    for index, task in enumerate(tasks):
        task["name"] = task.get("name") or f"default{index}"
        task["maxRetry"] = task.get("maxRetry") or _MAX_RETRY
        if task.get("minAvailable") is None:
            task["minAvailable"] = int(task.get("replicas") or 0)
    spec["queue"] = spec.get("queue") or "default"
    spec["schedulerName"] = spec.get("schedulerName") or "volcano"
    spec["maxRetry"] = spec.get("maxRetry") or _MAX_RETRY
    spec["minAvailable"] = spec.get("minAvailable") or sum(int(t["minAvailable"]) for t in tasks)
    return job


def validate_create(job: Object, *, queue: Object | None) -> str:
    """Return why a new vcjob is refused, else ""; `queue` is None where there is none."""
    spec: Object = job.get("spec") or {}
    name = str(spec.get("queue", ""))
    if not spec.get("tasks"):
        return "No task specified in job spec"
    if queue is None:
        return f'unable to find job queue: queue.scheduling.volcano.sh "{name}" not found;'
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        return (
            f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        )
    return ""


def validate_update(new: Object, old: Object) -> str:
    """Return why a change of a vcjob is refused."""
    return "" if _frozen(new.get("spec") or {}) == _frozen(old["spec"]) else _IMMUTABLE


def _frozen(spec: Object) -> Object:
    """Return what may not change of a spec."""

    def without_sizes(part: Object) -> Object:
        return {key: value for key, value in part.items() if key not in _SIZES}

    return {**without_sizes(spec), "tasks": [*map(without_sizes, spec.get("tasks") or ())]}
