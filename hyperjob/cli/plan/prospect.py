"""Whether one that would wait has room now, and whether it ever will as things are. Pure."""

from collections.abc import Iterable

from controller.model.observed import Cluster
from controller.model.shortage import ClusterTrouble
from controller.placement.assign import Room
from controller.placement.claim import Claim
from controller.placement.place import could_hold
from controller.placement.search import assign


def has_room(claim: Claim, clusters: Iterable[Cluster]) -> bool:
    """Tell whether what must go together has room as it is."""
    room = Room.of(clusters, claim.standing)
    return len(assign(claim.requests, room, max_domains=claim.max_domains).assigned) >= claim.needed


def too_large(claim: Claim, clusters: Iterable[Cluster]) -> bool:
    """Tell whether not even empty clusters would hold it; one that is not Ready may come back."""
    known = tuple(clusters)
    if any(is_down(cluster) for cluster in known):
        return False
    return not could_hold(
        claim.requests, known, minimum=claim.needed, max_domains=claim.max_domains
    )


def is_down(cluster: Cluster) -> bool:
    """Tell whether a cluster is unusable only while it is not Ready."""
    return cluster.trouble is not None and cluster.trouble.code is ClusterTrouble.NOT_READY
