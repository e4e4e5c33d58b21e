"""Adoption of objects that have the HyperJob's labels and no controller, or lost their labels.

An object with another controller is a name conflict: the status reports it, and the controller
never changes it.
"""

from typing import Literal

from hyperjob_core.api.names import KIND
from hyperjob_engine.expansion.objects import labels_of, owner_reference
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import HyperJob, Ownership
from hyperjob_engine.model.planned import Adopt
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.reasons.reason import Blocked, Reason


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
