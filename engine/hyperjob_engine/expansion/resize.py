"""The changes that Volcano accepts on a live vcjob: replicas, minAvailable, priorityClassName.

The controller compares only these fields with the template, and only those that the template sets:
the other fields of a live vcjob have the defaults of Volcano's webhook.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, integer, objects, string
from hyperjob_engine.model.observed import Job
from hyperjob_engine.model.planned import Resize


def resize(job: Job, template: Object) -> Resize | None:
    """Return the JSON patch that makes a live vcjob equal to its template; None if it is.

    A patch names tasks by index. Before the changes of a task it tests the name: the API server
    refuses the patch if the vcjob has changed meanwhile.
    """
    tasks = objects(template.get("tasks"))
    if len(tasks) != len(job.tasks):
        return None  # Volcano and HyperJob's webhook refuse the change
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
    if not operations:
        return None
    return Resize(name=job.name, uid=job.uid, operations=tuple(operations))


def _least(wanted: int | None, live: int | None, before: int, after: int) -> int | None:
    """Return the minAvailable; without one in the template, all pods if it was all pods before.

    Volcano reads 0 in the template as unset.
    """
    if wanted:
        return wanted
    if live is None or before == after:
        return None
    return after if live == before else min(live, after)


def _set(path: str, value: object) -> Object:
    return {"op": "add", "path": path, "value": value}
