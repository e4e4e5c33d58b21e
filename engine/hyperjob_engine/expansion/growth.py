"""Growth of a running sub-job: the pods that its template has and its vcjob does not have yet.

The queue engine admits the growth like a sub-job, on the cluster where the vcjob runs.
"""

from hyperjob_core.api.wire import count, objects
from hyperjob_engine.expansion.expand import demand_of, demand_of_all
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob, closed_queue_of
from hyperjob_engine.resources import Resources, subtract


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
