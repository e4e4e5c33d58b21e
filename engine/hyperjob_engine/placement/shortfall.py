"""Why the accelerators of a split do not fit, on all clusters or on the preferred ones alone.

The number of clusters in an explanation is bounded, as in `shortage`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.share import SplitShare, Wish, capacities, most_together
from hyperjob_engine.placement.shortage import why_not
from hyperjob_engine.reasons.hindrance import Hindrance, Obstacle
from hyperjob_engine.reasons.shortage import ClusterOffer, SplitOverflow, SplitShortage

_CLUSTERS_SHOWN: Final = 5


def explain_shortfall(
    wish: Wish, clusters: Iterable[Cluster], room: FreeRoom, *, max_domains: int | None
) -> SplitShortage:
    """Return the wanted accelerators, how many fit, and how many each cluster can take."""
    known = {cluster.name: cluster for cluster in clusters}
    capacity = capacities(wish, room)
    together = most_together(capacity, room, max_domains=max_domains)
    others = () if wish.required else known
    names = sorted(
        dict.fromkeys([*wish.preferred, *others]), key=lambda name: (-capacity.get(name, 0), name)
    )
    parts = tuple(
        _part(wish, name, capacity.get(name, 0), known.get(name), room, together, max_domains)
        for name in names[:_CLUSTERS_SHOWN]
    )
    return SplitShortage(
        accelerators=wish.accelerators,
        kind=wish.kind,
        fixed=wish.fixed,
        per_pod=wish.per_pod,
        required=wish.required,
        max_domains=max_domains,
        found=sum(wish.fixed + capacity[name] * wish.per_pod for name in together),
        together=len(together),
        fewest=next((n for n in range(1, wish.most_parts + 1) if wish.pods_of(n) is not None), 0),
        parts=parts,
        hidden=len(names) - len(parts),
    )


def explain_overflow_of(
    wish: Wish, clusters: Iterable[Cluster], shares: Sequence[SplitShare]
) -> SplitOverflow:
    """Return how many of the accelerators each preferred cluster takes."""
    known = {cluster.name: cluster for cluster in clusters}
    taken = {item.cluster: wish.fixed + item.pods * wish.per_pod for item in shares}
    parts = []
    for name in wish.preferred[:_CLUSTERS_SHOWN]:
        hindrance = None
        if name not in taken and name not in known:
            hindrance = Hindrance(cluster=name, code=Obstacle.UNKNOWN)
        elif name not in taken and not known[name].usable:
            trouble = known[name].trouble
            hindrance = Hindrance(cluster=name, code=Obstacle.UNUSABLE, trouble=trouble)
        parts.append(ClusterOffer(cluster=name, room=taken.get(name, 0), hindrance=hindrance))
    return SplitOverflow(accelerators=wish.accelerators, kind=wish.kind, parts=tuple(parts))


def _part(
    wish: Wish,
    name: str,
    pods: int,
    cluster: Cluster | None,
    room: FreeRoom,
    together: Sequence[str],
    max_domains: int | None,
) -> ClusterOffer:
    if not pods:
        least = wish.request(1)
        return ClusterOffer(
            cluster=name, hindrance=why_not(least, name, cluster, room, max_domains)
        )
    return ClusterOffer(
        cluster=name, room=wish.fixed + pods * wish.per_pod, used_up=name not in together
    )
