"""Decisions about a HyperJob's sub-jobs: restarts, moves and the end; and which of them are lost.

The controller writes a decision into the status first, and a later pass acts on it. A controller
that restarts in between finds the decision in the status and acts on it once.

A cluster that is not Ready may be disconnected and still run its pods: it counts as lost only after
`--cluster-lost-timeout`. Karmada deletes the pods with a removed Cluster, with a deleted
ResourceBinding and with a deleted Work: such a sub-job is lost at once, or after `WORK_SETTLES`.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import GangStatus, JobStatus
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import Job, Observed, Ownership, Policy
from hyperjob_engine.model.planned import DeleteChild, DeletionCause
from hyperjob_engine.model.subjobs import Child, Choice, SubJob
from hyperjob_engine.reasons.reason import ClusterTrouble, Reason

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


WORK_SETTLES: Final = timedelta(seconds=3)
"""While Karmada moves a sub-job, its ResourceBinding may have no Work for this long."""


class Missing(enum.StrEnum):
    """The object of a started sub-job that another client deleted; its pods are deleted with it."""

    CLUSTER = "Cluster"
    BINDING = "ResourceBinding"
    WORK = "Work"
    PLACE = "place"
    """Its ResourceBinding names no cluster any more: Karmada evicts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A sub-job whose cluster is not Ready, or that lacks an object; it is lost from `at` on.

    `since` is when the Cluster stopped being Ready; None with a `missing` object.
    """

    cluster: str
    at: datetime
    is_lost: bool
    since: datetime | None = None
    missing: Missing | None = None


def loss_text(loss: Loss) -> str:
    """Return the trouble of a cluster, and from when on the cluster counts as lost."""
    if loss.missing in (Missing.BINDING, Missing.WORK):
        kind = loss.missing
        return f"its {kind} was deleted, and Karmada deleted its pods on {loss.cluster}"
    if loss.missing is Missing.PLACE:
        return f"Karmada evicts it from cluster {loss.cluster}"
    if loss.since is None:
        return f"cluster {loss.cluster} is gone"
    text = f"cluster {loss.cluster} is not Ready since {rfc3339(loss.since)}"
    if loss.is_lost:
        return f"{text} and counts as lost"
    return f"{text}, counts as lost from {rfc3339(loss.at)} on"


def reachable(observed: Observed) -> set[str]:
    """Return the names of the clusters that are Ready."""
    return {cluster.name for cluster in observed.clusters if cluster.not_ready_since is None}


def losses_of(observed: Observed, members: Sequence[Member]) -> Mapping[str, Loss]:
    """Return the trouble of the clusters and objects of started sub-jobs, by sub-job."""
    since = {
        cluster.name: cluster.not_ready_since
        for cluster in observed.clusters
        if cluster.trouble is None or cluster.trouble.code is not ClusterTrouble.REMOVED
    }
    if not observed.clusters:
        return {}  # no Cluster is known, which is no sign of a loss
    found: dict[str, Loss] = {}
    for _, child in members:
        where = child.cluster
        if _lacks_binding(child):
            found[child.name] = _gone(observed, where, Missing.BINDING, observed.now)
            continue
        if not where or (where in since and since[where] is None):
            if _is_evicted(child):
                found[child.name] = _gone(observed, where, Missing.PLACE, observed.now)
                continue
            workless = _workless_since(child)
            # Pods that its member shows run on: Karmada has not yet made the Work again.
            if workless is not None and not observed.pods_left.get(child.name):
                due = workless + WORK_SETTLES
                found[child.name] = _gone(observed, where, Missing.WORK, due)
            continue
        if _was_started(child):
            found[child.name] = _loss(observed, where, since.get(where))
    return found


def reason_of_loss(loss: Loss) -> Reason:
    """Return the reason of a sub-job with trouble of its cluster or its objects."""
    if loss.missing in (Missing.BINDING, Missing.WORK):
        return Reason.OBJECT_DELETED
    return Reason.CLUSTER_LOST if loss.is_lost else Reason.CLUSTER_NOT_READY


def next_loss(observed: Observed, losses: Mapping[str, Loss]) -> timedelta | None:
    """Return the time until the next sub-job counts as lost; None without such a sub-job."""
    waits = [loss.at - observed.now for loss in losses.values() if not loss.is_lost]
    return min(waits, default=None)


def _lacks_binding(child: Child) -> bool:
    """Return whether a started sub-job has lost its ResourceBinding.

    Karmada does not create a deleted ResourceBinding again while the vcjob stays as it is. A vcjob
    without Karmada's label (not `claimed`) gets its first ResourceBinding soon. While there is a
    ResourceBinding of an earlier vcjob of this name (`left_behind`), Karmada has to replace it.
    """
    job, report = child.job, child.report
    if not child.exists or child.is_terminal or job is None or report is None:
        return False
    return child.binding is None and job.claimed and not child.left_behind


def _workless_since(child: Child) -> datetime | None:
    """Return when a started sub-job has lost its Work; None if it has one, or never had.

    Karmada does not create a deleted Work again while the ResourceBinding stays as it is, and it
    empties the status of the vcjob: only the entry in `status.jobs` says that its cluster has
    reported it. A vcjob that is created again has no phase there until its cluster reports it.
    """
    binding, record = child.binding, child.record
    if binding is None or record is None or not _was_reported(child):
        return None
    if binding.dispatching_suspended or binding.cluster != record.cluster:
        return None
    return binding.workless_since


def _is_evicted(child: Child) -> bool:
    """Return whether Karmada has taken a started sub-job from its cluster, and found no other.

    A taint with the effect NoExecute does that: the member's pods are deleted at once, or after
    Karmada's `--graceful-eviction-timeout`. The vcjob keeps its last status.
    """
    binding = child.binding
    if binding is None or binding.cluster or not binding.unscheduled_reason:
        return False
    return not binding.scheduling_suspended and _was_reported(child)


def _was_reported(child: Child) -> bool:
    """Return whether a cluster has reported the present attempt, and it has not ended."""
    job, record = child.job, child.record
    if not child.exists or child.is_terminal or job is None or record is None:
        return False
    return child.phase is not JobPhase.UNKNOWN and record.attempt == job.attempt


def _was_started(child: Child) -> bool:
    """Return whether a sub-job was started on its cluster and has not ended.

    A sub-job that never started can be placed on another cluster without a restart.
    """
    if not child.exists or child.is_terminal:
        return False
    applied = child.binding is not None and child.binding.applied
    return applied or child.phase is not JobPhase.UNKNOWN


def _gone(observed: Observed, cluster: str, missing: Missing, at: datetime) -> Loss:
    return Loss(cluster=cluster, at=at, is_lost=observed.now >= at, missing=missing)


def _loss(observed: Observed, cluster: str, since: datetime | None) -> Loss:
    if since is None:
        return Loss(cluster=cluster, at=observed.now, is_lost=True, missing=Missing.CLUSTER)
    at = since + observed.limits.cluster_lost
    return Loss(cluster=cluster, since=since, at=at, is_lost=observed.now >= at)
