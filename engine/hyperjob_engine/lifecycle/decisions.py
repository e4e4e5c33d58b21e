"""Decisions about a HyperJob's sub-jobs: restarts, moves and the end.

The controller writes a decision into the status first, and a later pass acts on it. A controller
that restarts in between finds the decision in the status and acts on it once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from hyperjob_core.api.status import GangStatus, JobStatus
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import Job, Ownership, Policy
from hyperjob_engine.model.planned import DeleteChild, DeletionCause
from hyperjob_engine.model.subjobs import Child, Choice, SubJob
from hyperjob_engine.reasons.reason import Reason

Member = tuple[SubJob, Child]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """A sub-job that the controller recreates; `why` is the message of its status.

    `leave` are the clusters that are excluded for it from now on; `leave_for` is for how long, None
    for good. Clusters that are excluded for a time already stay excluded as long as the new ones.
    """

    name: str
    reason: Reason
    why: str
    leave: tuple[str, ...] = ()
    leave_for: timedelta | None = None
    delayed: bool = False


class RefusedRequest(NamedTuple):
    """A request that the controller refuses, for the whole HyperJob or for some sub-jobs."""

    kind: str
    token: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The sub-jobs to recreate, how many of `maxRestarts` that costs, and the handled requests.

    `gives_back`: the sub-jobs lose their share of their queue and wait for a new one; with `gang`
    not before its `retry_time`. `size`: another number of sub-jobs from then on, for the reason
    `chosen`; those of `added` have a share before they exist, and those of `leaving` are given up.
    `makes_way`: it was asked to.
    """

    again: tuple[Recreation, ...] = ()
    spent: int = 0
    gives_back: bool = False
    gang: GangStatus | None = None
    handled: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[RefusedRequest, ...] = ()
    size: Choice = ()
    chosen: Chosen = Chosen.SPARED
    added: tuple[JobStatus, ...] = ()
    leaving: frozenset[str] = frozenset()
    makes_way: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of the HyperJob; empty `why`: all its sub-jobs have ended by themselves."""

    completed: bool
    reason: str = ""
    why: str = ""


def restarts_spent(failure: str, max_restarts: int) -> End:
    """Return the end by a failure after the last restart that `maxRestarts` allows."""
    spent = f"maxRestarts {max_restarts} is used up" if max_restarts else "maxRestarts is 0"
    return End(completed=False, reason=Reason.MAX_RESTARTS, why=f"{failure}; {spent}")


def with_all(failure: str) -> str:
    """Return why a sub-job is recreated that has not failed itself."""
    return f"restarted with all sub-jobs, because {failure}"


def deletion(child: Child, *, why: DeletionCause | None = None) -> Iterator[DeleteChild]:
    """Yield the deletion of the sub-job's objects, if one exists that is not being deleted.

    The controller deletes only objects of this HyperJob, and only those with the observed UIDs.
    """
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
