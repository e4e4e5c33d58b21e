"""The sub-jobs whose cluster or objects are gone, and when they count as lost.

A cluster that is not Ready may be disconnected and still run its pods: it counts as lost only after
`--cluster-lost-timeout`. Karmada deletes the pods with a removed Cluster and with a deleted
ResourceBinding: such a sub-job is lost at once.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.reasons.hindrance import ClusterTrouble
from hyperjob_engine.reasons.outcomes import Loss, Missing
from hyperjob_engine.reasons.reason import Reason


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
        missing = _missing(child)
        if missing is not None:
            found[child.name] = Loss(cluster=where, at=observed.now, is_lost=True, missing=missing)
            continue
        if not where or (where in since and since[where] is None):
            continue
        if _was_started(child):
            found[child.name] = _loss(observed, where, since.get(where))
    return found


def reason_of_loss(loss: Loss) -> Reason:
    """Return the reason of a sub-job with trouble of its cluster or its objects."""
    if loss.missing is Missing.BINDING:
        return Reason.OBJECT_DELETED
    return Reason.CLUSTER_LOST if loss.is_lost else Reason.CLUSTER_NOT_READY


def next_loss(observed: Observed, losses: Mapping[str, Loss]) -> timedelta | None:
    """Return the time until the next cluster counts as lost; None without such a cluster."""
    waits = [loss.at - observed.now for loss in losses.values() if not loss.is_lost]
    return min(waits, default=None)


def _missing(child: Child) -> Missing | None:
    """Return the object that a started sub-job lacks: its ResourceBinding, or nothing.

    Karmada does not create a deleted ResourceBinding again while the vcjob stays as it is. A vcjob
    without Karmada's label (not `claimed`) gets its first ResourceBinding soon. While there is a
    ResourceBinding of an earlier vcjob of this name (`left_behind`), Karmada has to replace it.
    """
    job, report = child.job, child.report
    if not child.exists or child.is_terminal or job is None or report is None:
        return None
    if child.binding is None and job.claimed and not child.left_behind:
        return Missing.BINDING
    return None


def _was_started(child: Child) -> bool:
    """Return whether a sub-job was started on its cluster and has not ended.

    A sub-job that never started can be placed on another cluster without a restart.
    """
    if not child.exists or child.is_terminal:
        return False
    applied = child.binding is not None and child.binding.applied
    return applied or child.phase is not JobPhase.UNKNOWN


def _loss(observed: Observed, cluster: str, since: datetime | None) -> Loss:
    if since is None:
        return Loss(cluster=cluster, at=observed.now, is_lost=True, missing=Missing.CLUSTER)
    at = since + observed.cluster_lost_timeout
    return Loss(cluster=cluster, since=since, at=at, is_lost=observed.now >= at)
