"""Which sub-jobs are on a cluster that is out of reach, and since when that counts as a loss.

A cluster that is not Ready may be cut off and still run what it has: only time makes it lost. One
that is no longer registered is lost at once, for Karmada has taken its sub-jobs away.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from controller.lifecycle.decisions import Member
from controller.model.child import Child
from controller.model.observed import Observed
from controller.model.outcomes import Loss
from hyperjob.api.phases import JobPhase


def losses_of(observed: Observed, members: Sequence[Member]) -> Mapping[str, Loss]:
    """Return the trouble with the clusters that sub-jobs were started on, by sub-job."""
    since = {cluster.name: cluster.not_ready_since for cluster in observed.clusters}
    if not since:
        return {}  # nothing is known of any cluster
    found: dict[str, Loss] = {}
    for _, child in members:
        where = child.cluster
        if not where or (where in since and since[where] is None):
            continue
        if _was_started(child):
            found[child.name] = _loss(observed, where, since.get(where))
    return found


def next_loss(observed: Observed, losses: Mapping[str, Loss]) -> timedelta | None:
    """Return when the next cluster comes to count as lost."""
    waits = [loss.at - observed.now for loss in losses.values() if not loss.is_lost]
    return min(waits, default=None)


def _was_started(child: Child) -> bool:
    """Return whether something of a sub-job is there that has not ended.

    What never started is placed elsewhere at no cost.
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
