"""The indices of a replicatedJob's sub-jobs, and the choice of those that scaling down removes.

A sub-job keeps its index, and its name, for life. Scaling down removes sub-jobs that do not run
first, then those with the highest index; scaling up uses the lowest free indices.

Adoption of objects that have the HyperJob's labels and no controller, or lost their labels.

An object with another controller is a name conflict: the status reports it, and the controller
never changes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hyperjob_core.api.names import KIND, child_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import natural
from hyperjob_engine.expansion.objects import labels_of, owner_reference
from hyperjob_engine.model.child import Child, child_of
from hyperjob_engine.model.observed import HyperJob, Observed, Ownership
from hyperjob_engine.model.planned import Adopt
from hyperjob_engine.model.subjobs import Group, SubJob
from hyperjob_engine.reasons.reason import Blocked, Reason


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
    order = sorted(
        present,
        key=lambda index: (
            _worth(child_of(observed, child_name(hyperjob, name, index))),
            -index,
        ),
    )
    gone = len(present) - wanted
    return Members(
        kept=sorted(order[gone:]),
        leaving=[child_name(hyperjob, name, index) for index in sorted(order[:gone])],
    )


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
