"""Why a sub-job, or a split, has no place or not another one, cluster by cluster.

The number of clusters in an explanation is bounded: a message about hundreds of them stays
readable. No decision depends on `alternatives`, which `kubectl hyperjob why` shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hyperjob_core.hints import nearest
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.share import SplitShare, Wish, capacities, most_together
from hyperjob_engine.reasons.hindrance import Hindrance, Lack, Obstacle
from hyperjob_engine.reasons.shortage import (
    ClusterOffer,
    Overflow,
    Shortage,
    ShortageCode,
    SplitOverflow,
    SplitShortage,
)
from hyperjob_engine.resources import Resources, amount_text, fits, is_extended, lacking, order_of

_CLUSTERS_SHOWN: Final = 5
_RESOURCES_SHOWN: Final = 2


def explain(
    request: PlacementRequest,
    clusters: Iterable[Cluster],
    room: FreeRoom,
    *,
    max_domains: int | None,
) -> Shortage:
    """Return the demand of a sub-job and what each cluster lacks; `room` has all others placed."""
    known = {cluster.name: cluster for cluster in clusters}
    others = () if request.required else (name for name in known if name not in request.preferred)
    names = [*request.preferred, *sorted(others)]
    found = _hindrances(names, request, known, room, max_domains)
    return Shortage(
        code=ShortageCode.NO_ROOM,
        demand=request.demand,
        required=request.required,
        hindrances=found,
        hidden=len(names) - len(found),
        absent=_absent(request, found, known.values()),
    )


def explain_overflow(
    request: PlacementRequest,
    clusters: Iterable[Cluster],
    room: FreeRoom,
    *,
    max_domains: int | None,
) -> Overflow:
    """Return what the preferred clusters lack for a sub-job on another cluster."""
    known = {cluster.name: cluster for cluster in clusters}
    found = _hindrances(request.preferred, request, known, room, max_domains)
    return Overflow(hindrances=found, hidden=len(request.preferred) - len(found))


def _hindrances(
    names: Sequence[str],
    request: PlacementRequest,
    known: Mapping[str, Cluster],
    room: FreeRoom,
    max_domains: int | None,
) -> tuple[Hindrance, ...]:
    return tuple(
        why_not(request, name, known.get(name), room, max_domains)
        for name in names[:_CLUSTERS_SHOWN]
    )


def why_not(
    request: PlacementRequest,
    name: str,
    cluster: Cluster | None,
    room: FreeRoom,
    max_domains: int | None,
) -> Hindrance:
    """Return why a sub-job is not on a cluster; `room` has all others placed."""
    if cluster is None:
        return Hindrance(cluster=name, code=Obstacle.UNKNOWN)
    found = obstacle(request, cluster, room, max_domains)
    return found or Hindrance(cluster=name, code=Obstacle.OTHERS)


def obstacle(
    request: PlacementRequest, cluster: Cluster, room: FreeRoom, max_domains: int | None
) -> Hindrance | None:
    """Return why a cluster cannot take a sub-job; None if it can."""
    name = cluster.name
    if not cluster.usable:
        return Hindrance(cluster=name, code=Obstacle.UNUSABLE, trouble=cluster.trouble)
    if request.closed is not None and name in request.closed.clusters:
        return Hindrance(cluster=name, code=Obstacle.QUEUE_CLOSED, other=request.closed.name)
    if name in request.excluded:
        return Hindrance(cluster=name, code=Obstacle.EXCLUDED)
    if not request.allows(name):
        return Hindrance(cluster=name, code=Obstacle.NOT_ALLOWED)
    available = room.free.get(name, cluster.free)
    if not fits(request.demand, available):
        lacks = _lacks(request.demand, available, cluster)
        return Hindrance(cluster=name, code=Obstacle.LACKS, lacks=lacks)
    crowding = room.slots.crowding(name, request.pods)
    if crowding is not None:
        return Hindrance(cluster=name, code=Obstacle.NODES, crowding=crowding)
    used = room.domains
    if max_domains is not None and len(used) >= max_domains and name not in used:
        return Hindrance(cluster=name, code=Obstacle.MAX_DOMAINS, limit=max_domains)
    return None


def _lacks(demand: Resources, free: Resources, cluster: Cluster) -> tuple[Lack, ...]:
    """Return the resources that a cluster lacks for a demand, accelerators first, at most two."""
    missing = lacking(demand, free)
    return tuple(
        Lack(
            resource=name,
            missing=missing[name],
            free=max(free.get(name, 0), 0),
            whole=max(cluster.allocatable.get(name, 0), 0),
            wanted=demand[name],
        )
        for name in sorted(missing, key=order_of)[:_RESOURCES_SHOWN]
    )


def _absent(
    request: PlacementRequest, found: Sequence[Hindrance], clusters: Iterable[Cluster]
) -> str:
    """Return which device no cluster has, or no node enough of for one pod; empty if one may have.

    What no cluster has, the first cluster lacks too: the first hindrance is enough.
    """
    known = tuple(clusters)
    if not found or found[0].code not in (Obstacle.LACKS, Obstacle.NODES):
        return ""
    if not all(each.allocatable for each in known):  # a cluster reports no resources
        return ""
    asked = [name for name, amount in request.demand.items() if amount > 0 and is_extended(name)]
    for name in asked:
        if all(each.allocatable.get(name, 0) <= 0 for each in known):
            amounts = (pair for each in known for pair in each.allocatable.items())
            devices = {each for each, amount in amounts if amount > 0 and is_extended(each)}
            near = nearest(name, sorted(devices))
            return f"no cluster has {name}" + (f"; did you mean {near}?" if near else "")
        most = max((pods.request.get(name, 0) for pods in request.pods), default=0)
        large = [each for each in known if each.allocatable.get(name, 0) >= most]
        if large and not any(_may_have_node(each, name, most) for each in large):
            wanted = amount_text(name, most)
            return f"no node has {wanted} for one pod of {request.name}: make its pods smaller"
    return ""


def _may_have_node(cluster: Cluster, name: str, amount: int) -> bool:
    """Return whether a node of a cluster has an amount of a device when empty, or is not known."""
    nodes = cluster.view.nodes if cluster.view is not None else None
    return nodes is None or any(node.allocatable.get(name, 0) >= amount for node in nodes)


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
    """Return what a cluster offers to a split: a sub-job of up to `pods` scaled pods, or why none.

    `together` are the clusters that `max_domains` leaves; the room of another one is used up.
    """
    if not pods:
        least = wish.request(1)
        return ClusterOffer(
            cluster=name, hindrance=why_not(least, name, cluster, room, max_domains)
        )
    return ClusterOffer(
        cluster=name, room=wish.fixed + pods * wish.per_pod, used_up=name not in together
    )


def alternatives(
    request: PlacementRequest,
    chosen: str,
    clusters: Iterable[Cluster],
    room: FreeRoom,
    *,
    max_domains: int | None,
    unplaced: tuple[Obstacle, str] = (Obstacle.NOT_FOR_ALL, ""),
    runs: bool = False,
) -> dict[str, Hindrance]:
    """Return the reason against each cluster but the chosen one (empty: none was chosen).

    `room` is the room with all other sub-jobs placed and without this one. `unplaced` is the code,
    with its subject, for clusters with room if none was chosen. `runs`: the sub-job exists on the
    chosen cluster.
    """
    found = {}
    for cluster in sorted(clusters, key=lambda cluster: cluster.name):
        if cluster.name == chosen:
            continue
        hindrance = obstacle(request, cluster, room, max_domains)
        if hindrance is None:
            code, other = _less_good(request, chosen, cluster.name, room) if chosen else unplaced
            code = Obstacle.STAYS if runs else code
            hindrance = Hindrance(cluster=cluster.name, code=code, other=other)
        found[cluster.name] = hindrance
    return found


def _less_good(
    request: PlacementRequest, chosen: str, other: str, room: FreeRoom
) -> tuple[Obstacle, str]:
    """Return the first rule by which the chosen cluster is better, and the subject of its code."""
    if chosen not in room.clusters:
        return Obstacle.SETTLED, ""
    best, cost = room.cost(request, chosen), room.cost(request, other)
    if cost.tier > best.tier:
        preferred = other in request.preferred
        return Obstacle.LATER if preferred else Obstacle.NOT_PREFERRED, chosen
    if cost < best:
        return Obstacle.LEFT_TO_OTHERS, ""
    if cost.moves > best.moves:
        return Obstacle.MOVES, chosen
    if cost.siblings > best.siblings:
        return Obstacle.SIBLING, request.group
    if cost.distance > best.distance:
        return Obstacle.FARTHER, ""
    if cost.unmet > best.unmet:
        return Obstacle.UNMET, chosen
    if cost.left > best.left:
        return Obstacle.LOOSER, chosen
    return Obstacle.BY_NAME, chosen
