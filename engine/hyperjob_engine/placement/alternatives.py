"""Why a sub-job is not on another cluster, cluster by cluster, for `kubectl hyperjob why`.

No decision depends on it.
"""

from collections.abc import Iterable

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.shortage import obstacle
from hyperjob_engine.reasons.hindrance import Hindrance, Obstacle


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
    if cost.siblings > best.siblings:
        return Obstacle.SIBLING, request.group
    if cost.distance > best.distance:
        return Obstacle.FARTHER, ""
    if cost.left > best.left:
        return Obstacle.LOOSER, chosen
    return Obstacle.BY_NAME, chosen
