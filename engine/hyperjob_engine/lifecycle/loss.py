"""The sub-jobs on clusters that are not Ready or were removed, and when these count as lost.

A cluster that is not Ready may be disconnected and still run its pods: it counts as lost only after
`--cluster-lost-timeout`. A removed Cluster is lost at once: Karmada has removed its sub-jobs.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.reasons.outcomes import Loss


def losses_of(observed: Observed, members: Sequence[Member]) -> Mapping[str, Loss]:
    """Return the trouble of the clusters on which sub-jobs were started, by sub-job."""
    since = {cluster.name: cluster.not_ready_since for cluster in observed.clusters}
    if not since:
        return {}  # no Cluster is known, which is no sign of a loss
    found: dict[str, Loss] = {}
    for _, child in members:
        where = child.cluster
        if not where or (where in since and since[where] is None):
            continue
        if _was_started(child):
            found[child.name] = _loss(observed, where, since.get(where))
    return found


def next_loss(observed: Observed, losses: Mapping[str, Loss]) -> timedelta | None:
    """Return the time until the next cluster counts as lost; None without such a cluster."""
    waits = [loss.at - observed.now for loss in losses.values() if not loss.is_lost]
    return min(waits, default=None)


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
        return Loss(cluster=cluster, at=observed.now, is_lost=True)
    at = since + observed.cluster_lost_timeout
    return Loss(cluster=cluster, since=since, at=at, is_lost=observed.now >= at)
