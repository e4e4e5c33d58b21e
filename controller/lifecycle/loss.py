"""Which sub-jobs stand on a cluster that is out of reach, and since when that counts as a loss.

A cluster that is not Ready may be cut off and still run what it has: only time makes it lost. One
that is no longer registered is lost at once, for Karmada has taken its sub-jobs away.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.model.child import Child
from controller.model.observed import Observed
from controller.model.wire import rfc3339
from hyperjob.api.batch import JobPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The trouble with the cluster of a sub-job; it counts as lost from `at` on."""

    at: datetime
    is_lost: bool
    message: str


def loss_of(observed: Observed, child: Child) -> Loss | None:
    """Return the trouble with the cluster that a sub-job was started on, if there is any."""
    if not child.exists or child.is_terminal or not child.cluster or not observed.clusters:
        return None
    applied = child.binding is not None and child.binding.applied
    if child.phase is JobPhase.UNKNOWN and not applied:
        return None  # nothing of it is there; it is placed elsewhere at no cost
    for cluster in observed.clusters:
        if cluster.name == child.cluster:
            break
    else:
        return Loss(at=observed.now, is_lost=True, message=f"cluster {child.cluster} is gone")
    if cluster.not_ready_since is None:
        return None
    at = cluster.not_ready_since + observed.cluster_lost_timeout
    since = f"cluster {cluster.name} is not Ready since {rfc3339(cluster.not_ready_since)}"
    if observed.now >= at:
        return Loss(at=at, is_lost=True, message=f"{since} and counts as lost")
    return Loss(at=at, is_lost=False, message=f"{since}, counts as lost from {rfc3339(at)} on")


def next_loss(observed: Observed, children: list[Child]) -> timedelta | None:
    """Return when the next cluster comes to count as lost."""
    losses = (loss_of(observed, child) for child in children)
    waits = [found.at - observed.now for found in losses if found and not found.is_lost]
    return min(waits, default=None)
