"""The sub-jobs of a replicatedJob: their indices, adoption, growth, and changes of live vcjobs.

A sub-job keeps its index, and its name, for life. Scaling down removes sub-jobs that do not run
first, then those with the highest index; scaling up uses the lowest free indices.

Objects are adopted that have the HyperJob's labels and no controller, or lost their labels. An
object with another controller is a name conflict: the status reports it, and the controller never
changes it.

Volcano accepts changes of replicas, minAvailable and priorityClassName on a live vcjob. The
controller compares only these fields with the template, and only those that the template sets: the
other fields of a live vcjob have the defaults of Volcano's webhook. The queue engine admits the
growth of a running sub-job, the pods that its template has and its vcjob does not have yet, like a
sub-job, on the cluster where the vcjob runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import KIND, child_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import count, integer, natural, objects, rfc3339, string
from hyperjob_engine.expansion.expand import demand_of, demand_of_all, expand_group, kind_of_task
from hyperjob_engine.expansion.objects import labels_of, owner_reference
from hyperjob_engine.model.observed import HyperJob, Job, Observed, Ownership, ReplicatedJob
from hyperjob_engine.model.planned import Adopt, Resize
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.split import split_scale
from hyperjob_engine.model.subjobs import (
    Child,
    Choice,
    Group,
    Step,
    SubJob,
    child_of,
    choosing,
    closed_queue_of,
    option_of,
    sizes,
)
from hyperjob_engine.reasons.reason import Blocked, Reason
from hyperjob_engine.resources import Resources, subtract
from hyperjob_engine.resources import scale as multiply


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The indices that a group keeps, ascending, and the sub-jobs that leave it."""

    kept: Sequence[int]
    leaving: Sequence[str]


def members_of(observed: Observed, group: Group) -> Members:
    """Return the indices of a group, from its existing vcjobs and the records in the status.

    An index never changes. A group that grows gets the lowest unused indices. Of a group that
    shrinks, the sub-jobs leave first that lose the least, and of equal ones the highest index.
    """
    hyperjob, name = observed.hyperjob.name, group.replicated_job.name
    wanted = len(group.sizes)
    present = sorted(present_indices(observed, name))
    if len(present) <= wanted:
        taken = set(present)
        fresh = (index for index in range(wanted + len(present)) if index not in taken)
        filled = [*present, *(next(fresh) for _ in range(wanted - len(present)))]
        return Members(kept=sorted(filled), leaving=())
    order = leaving_first(observed, name, present)
    gone = len(present) - wanted
    return Members(
        kept=sorted(order[gone:]),
        leaving=[child_name(hyperjob, name, index) for index in sorted(order[:gone])],
    )


def leaving_first(observed: Observed, group: str, indices: Iterable[int]) -> list[int]:
    """Return indices of a group in the order in which their sub-jobs leave it.

    What an elastic HyperJob has given up has no record any more, and may run until it is deleted.
    """
    hyperjob = observed.hyperjob

    def rank(index: int) -> tuple[bool, int, int]:
        child = child_of(observed, child_name(hyperjob.name, group, index))
        stays = hyperjob.elastic is None or child.record is not None
        return stays, _worth(child), -index

    return sorted(indices, key=rank)


def joining(observed: Observed, size: Choice) -> tuple[JobStatus, ...]:
    """Return the records of the sub-jobs that join a HyperJob with a larger size: all admitted.

    Their share is in the status before any of them exists, as that of all others.
    """
    hyperjob = choosing(observed.hyperjob, size)
    group = hyperjob.elastic
    kept = members_of(observed, expand_group(group)).kept if group is not None else ()
    return tuple(
        JobStatus(
            name=name,
            replicated_job=group.name,
            index=index,
            admitted=True,
            alternative=option_of(group, index).shape if group.own is not None else "",
            last_transition_time=rfc3339(observed.now),
        )
        for index in kept
        if group is not None
        and (name := child_name(hyperjob.name, group.name, index)) not in hyperjob.records
    )


def spare(observed: Observed, members: Sequence[tuple[SubJob, Child]]) -> tuple[Step, ...]:
    """Return the smaller sizes of a HyperJob that runs, with what each step to one frees.

    One world starts again as a whole: of equal sub-jobs the highest indices are gone then. A
    training whose sub-jobs have begun to end keeps its size.
    """
    hyperjob, group = observed.hyperjob, observed.hyperjob.elastic
    if group is None or hyperjob.stop is not None:
        return ()
    own = [each for each in members if each[0].group.name == group.name]
    if not all(child.exists and not child.is_terminal for _, child in own):
        return ()
    if group.is_auto:
        return tuple(_smaller_splits(group, [child for _, child in own]))
    indices = sorted((sub_job.index for sub_job, _ in own), reverse=True)
    if hyperjob.quorum is not None:
        indices = leaving_first(observed, group.name, indices)
    found, left = [], len(indices)
    for option in sizes(group):
        if option.replicas < left:
            going = indices[len(indices) - left : len(indices) - option.replicas]
            names = (child_name(hyperjob.name, group.name, index) for index in going)
            found.append((((group.name, option.alternative),), dict.fromkeys(names)))
            left = option.replicas
    return tuple(found)


def _smaller_splits(group: ReplicatedJob, children: Sequence[Child]) -> Iterator[Step]:
    """Yield the smaller sizes of an automatic split: each step frees pods of the last sub-jobs."""
    if group.split is None:
        return
    scale = split_scale(group.split, group.template)
    pod = dict(kind_of_task(objects(group.template.get("tasks"))[scale.task]).request)
    tasks = [(each.name, each.job.tasks) for each in children if each.job is not None]
    left = [(name, known[scale.task].replicas) for name, known in tasks if scale.task < len(known)]
    size = group.size
    for option in sizes(group):
        if option.size >= size:
            continue
        number, freed = -(-(size - option.size) // scale.per_pod), {}
        while number and left:
            name, pods = left.pop()
            gone = min(pods, number)
            left += [(name, pods - gone)] if pods > gone else []
            number, freed[name] = number - gone, multiply(pod, gone)
        yield ((group.name, option.alternative),), freed
        size = option.size


def unwanted(observed: Observed, wanted: frozenset[str]) -> list[str]:
    """Return the names of the HyperJob's vcjobs and policies that no replicatedJob has any more."""
    jobs = {
        name
        for name, job in observed.jobs.items()
        if job.ownership is Ownership.OURS and job.labelled
    }
    policies = {
        name for name, policy in observed.policies.items() if policy.ownership is Ownership.OURS
    }
    return sorted((jobs | policies) - wanted)


def present_indices(observed: Observed, group: str) -> set[int]:
    """Return the indices of a group that the status or a vcjob has."""
    prefix = child_name(observed.hyperjob.name, group, 0)[:-1]
    found = {
        record.index
        for record in observed.hyperjob.records.values()
        if record.replicated_job == group
        and record.name == child_name(observed.hyperjob.name, group, record.index)
    }
    for name, job in observed.jobs.items():
        if job.ownership is Ownership.FOREIGN or not name.startswith(prefix):
            continue
        digits = name.removeprefix(prefix)
        index = natural(digits)
        if index is not None and str(index) == digits:
            found.add(index)
    return found


def _worth(child: Child) -> int:
    """Return the rank of a sub-job by the work that its deletion loses; the lowest goes first."""
    if not child.exists and not child.is_terminal:
        return 0
    if not child.is_terminal and child.phase is not JobPhase.RUNNING:
        return 1
    if child.phase.is_failed:
        return 2
    return 3 if child.phase is JobPhase.COMPLETED else 4


def _is_predecessor(child: Child, hyperjob: str) -> bool:
    """Return whether the conflicting object belongs to a deleted HyperJob of the same name."""
    return any(
        item is not None
        and item.ownership is Ownership.FOREIGN
        and item.owner == f"{KIND} {hyperjob}"
        for item in (child.job, child.policy)
    )


def conflict(child: Child, hyperjob: str) -> Blocked | None:
    """Return which object of another owner has the sub-job's name; None if there is none.

    An object of a deleted HyperJob of the same name goes by itself. A HyperJob that exists would
    recreate a deleted object.
    """
    for kind, item in (("Job", child.job), ("PropagationPolicy", child.policy)):
        if child.exists:
            break
        if item is not None and item.ownership is Ownership.FOREIGN:
            if _is_predecessor(child, hyperjob):
                text = f"waits until the {kind} of an earlier HyperJob of this name is gone"
                return Blocked(Reason.BEING_DELETED, text)
            holder = f", controlled by {item.owner}" if item.owner else ""
            what = f"{kind} {child.name} exists and does not belong to this HyperJob{holder}"
            remedy = "delete it, or give the HyperJob another name"
            if item.owner.startswith(f"{KIND} "):
                remedy = "give one of the two HyperJobs another name"
            return Blocked(Reason.NAME_CONFLICT, f"{what}; {remedy}")
    return None


def adoptions(hyperjob: HyperJob, sub_job: SubJob, child: Child) -> list[Adopt]:
    """Return the adoptions that a sub-job's objects need."""
    found: list[Adopt] = []
    job, policy = child.job, child.policy
    if job is not None and not job.deleting:
        if job.ownership is Ownership.ORPHAN:
            found.append(_adopt(hyperjob, sub_job, "Job", job.uid, job.attempt))
        elif job.ownership is Ownership.OURS and not job.labelled:
            labels = _labels(hyperjob, sub_job, job.attempt)
            patch = {"metadata": {"uid": job.uid, "labels": labels}}
            found.append(Adopt(kind="Job", name=child.name, uid=job.uid, patch=patch))
    if policy is not None and not policy.deleting:
        bare = policy.ownership is Ownership.OURS and not policy.labelled
        if bare or policy.ownership is Ownership.ORPHAN:
            found.append(_adopt(hyperjob, sub_job, "PropagationPolicy", policy.uid, policy.attempt))
    return found


def _labels(hyperjob: HyperJob, sub_job: SubJob, attempt: int) -> dict[str, str]:
    return labels_of(hyperjob, sub_job.group.name, sub_job.index, attempt=attempt)


def _adopt(
    hyperjob: HyperJob,
    sub_job: SubJob,
    kind: Literal["Job", "PropagationPolicy"],
    uid: str,
    attempt: int,
) -> Adopt:
    """Return the patch that gives an object the labels and the ownerReference of the HyperJob."""
    metadata = {
        "uid": uid,  # a precondition: the API server refuses the patch of another object
        "labels": _labels(hyperjob, sub_job, attempt),
        "ownerReferences": [owner_reference(hyperjob)],
    }
    return Adopt(kind=kind, name=sub_job.name, uid=uid, patch={"metadata": metadata})


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
