"""Why a sub-job has no place, cluster by cluster.

The number of clusters is bounded: a message about hundreds of them stays readable.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hyperjob_core.hints import nearest
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.reasons.hindrance import Hindrance, Lack, Obstacle
from hyperjob_engine.reasons.shortage import NoDevice, Overflow, Shortage, ShortageCode
from hyperjob_engine.resources import Resources, fits, is_extended, lacking, order_of

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
        no_device=_no_device(found, known.values()),
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


def _no_device(found: Sequence[Hindrance], clusters: Iterable[Cluster]) -> NoDevice | None:
    """Return an extended resource that no cluster has; None if a cluster reports no resources."""
    absent = [
        lack.resource
        for hindrance in found[:1]
        for lack in hindrance.lacks
        if lack.whole <= 0 and is_extended(lack.resource)
    ]
    if not absent:
        return None
    known = tuple(clusters)
    for name in absent:
        if all(each.allocatable and each.allocatable.get(name, 0) <= 0 for each in known):
            devices = {each for one in known for each in one.allocatable if is_extended(each)}
            return NoDevice(name, nearest(name, sorted(devices)) or "")
    return None
