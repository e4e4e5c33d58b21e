"""The changes that Volcano accepts on a live vcjob: replicas, minAvailable, priorityClassName.

The controller compares only these fields with the template, and only those that the template sets:
the other fields of a live vcjob have the defaults of Volcano's webhook.

Growth of a running sub-job: the pods that its template has and its vcjob does not have yet.

The queue engine admits the growth like a sub-job, on the cluster where the vcjob runs.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import count, integer, objects, string
from hyperjob_engine.expansion.expand import demand_of, demand_of_all
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Job, Observed
from hyperjob_engine.model.planned import Resize
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob, closed_queue_of
from hyperjob_engine.resources import Resources, subtract


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


def grown_name(name: str) -> str:
    """Return the name of a sub-job's growth in the queue engine; no sub-job has such a name."""
    return f"{name}+"


def growth(observed: Observed, sub_job: SubJob, child: Child) -> PlacementRequest | None:
    """Return the request of a sub-job's growth; None if no task grows."""
    job = child.job
    if job is None or not child.exists or child.is_terminal:
        return None
    tasks = objects(sub_job.size.template.get("tasks"))
    pairs = zip(tasks, job.tasks, strict=False)
    if all(count(task.get("replicas")) <= live.replicas for task, live in pairs):
        return None
    cluster = (child.cluster,) if child.cluster else ()
    return PlacementRequest(
        name=grown_name(sub_job.name),
        group=sub_job.group.name,
        demand=_beyond(sub_job.size.demand, demand_of(job.spec)),
        everything=_beyond(sub_job.size.everything, demand_of_all(job.spec)),
        preferred=cluster,
        required=bool(cluster),
        closed=closed_queue_of(observed, sub_job.size.template),
    )


def _beyond(wanted: Resources, live: Resources) -> dict[str, int]:
    return {name: amount for name, amount in subtract(wanted, live).items() if amount > 0}
