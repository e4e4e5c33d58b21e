"""Deletion of a sub-job: its vcjob, which Karmada then deletes in the member, and its policy.

The controller deletes only objects of this HyperJob, and only those with the observed UIDs.
"""

from collections.abc import Iterator

from hyperjob_engine.model.observed import Job, Ownership, Policy
from hyperjob_engine.model.planned import DeleteChild, DeletionCause
from hyperjob_engine.model.subjobs import Child


def deletion(child: Child, *, why: DeletionCause | None = None) -> Iterator[DeleteChild]:
    """Yield the deletion of the sub-job's objects, if one exists that is not being deleted."""
    job = child.job if _goes(child.job) else None
    policy = child.policy if _goes(child.policy) else None
    if job is not None or policy is not None:
        yield DeleteChild(
            name=child.name,
            job_uid=job.uid if job is not None else None,
            policy_uid=policy.uid if policy is not None else None,
            why=why,
        )


def _goes(item: Job | Policy | None) -> bool:
    return item is not None and item.ownership is Ownership.OURS and not item.deleting
