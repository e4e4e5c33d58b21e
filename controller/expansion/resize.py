"""Changes that Volcano takes on a live vcjob: replicas, minAvailable, priorityClassName.

Only these are ever compared with the template, and only where the template says something: the
rest of a live vcjob belongs to the webhooks that defaulted it.
"""

from controller.model.observed import Job
from controller.model.planned import Resize
from controller.model.wire import count, integer, objects, string
from hyperjob.api.meta import Object


def resize(job: Job, template: Object) -> Resize | None:
    """Return the JSON patch that brings a live vcjob to its template, or None."""
    tasks = objects(template.get("tasks"))
    if len(tasks) != len(job.tasks):
        return None  # Volcano refuses it; admission does too
    operations: list[Object] = []
    for index, (live, task) in enumerate(zip(job.tasks, tasks, strict=True)):
        path = f"/spec/tasks/{index}"
        changes: list[Object] = []
        replicas = count(task.get("replicas"))
        if replicas != live.replicas:
            changes.append(_set(f"{path}/replicas", replicas))
        least = _least(
            integer(task.get("minAvailable")), live.min_available, live.replicas, replicas
        )
        if least is not None and least != live.min_available:
            changes.append(_set(f"{path}/minAvailable", least))
        if changes and live.name:
            operations.append({"op": "test", "path": f"{path}/name", "value": live.name})
        operations += changes
    before = sum(task.replicas for task in job.tasks)
    after = sum(count(task.get("replicas")) for task in tasks)
    least = _least(integer(template.get("minAvailable")), job.min_available, before, after)
    if least is not None and least != job.min_available:
        operations.append(_set("/spec/minAvailable", least))
    priority = string(template.get("priorityClassName"))
    if priority and priority != job.priority_class:
        operations.append(_set("/spec/priorityClassName", priority))
    return Resize(name=job.name, operations=tuple(operations)) if operations else None


def _least(wanted: int | None, live: int | None, before: int, after: int) -> int | None:
    """Return the minAvailable to have; if the template has none, all pods where it was all.

    A template's 0 means unset to Volcano.
    """
    if wanted:
        return wanted
    if live is None or before == after:
        return None
    return after if live == before else min(live, after)


def _set(path: str, value: object) -> Object:
    return {"op": "add", "path": path, "value": value}
