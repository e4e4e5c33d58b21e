"""Why a sub-job does not stand on any other cluster than its own, cluster by cluster.

For people who ask; no decision depends on it.
"""

from collections.abc import Iterable
from typing import Final

from controller.model.observed import Cluster
from controller.model.request import Request
from controller.placement.assign import Room
from controller.placement.shortage import obstacle

_FOR_THE_OTHERS: Final = "has room, but all find a place only if it is left to others"
_STAYS: Final = "has room, but running sub-jobs stay where they are"
NOT_FOR_ALL: Final = "has room, but not for all that must be placed together"


def alternatives(
    request: Request,
    chosen: str,
    clusters: Iterable[Cluster],
    room: Room,
    *,
    max_domains: int | None,
    unplaced: str = NOT_FOR_ALL,
    runs: bool = False,
) -> dict[str, str]:
    """Return the reason for each cluster but the chosen one (empty: none was).

    `room` is what is left beside all other sub-jobs, this one not put anywhere; `unplaced` is said
    of clusters that have room while none was chosen. `runs`: the sub-job exists on the chosen one.
    """
    found = {}
    for cluster in sorted(clusters, key=lambda cluster: cluster.name):
        if cluster.name == chosen:
            continue
        text = obstacle(request, cluster, room, max_domains)
        if not text:
            text = _less_good(request, chosen, cluster.name, room) if chosen else unplaced
            text = _STAYS if runs else text
        found[cluster.name] = text
    return found


def _less_good(request: Request, chosen: str, other: str, room: Room) -> str:
    """Name the first wish that speaks for the chosen cluster."""
    if chosen not in room.clusters:
        return "has room, but the sub-job stands already"
    best, cost = room.cost(request, chosen), room.cost(request, other)
    if cost.tier > best.tier:
        if other in request.preferred:
            return f"has room, but comes after {chosen} in clusterNames"
        return "has room, but is not in clusterNames"
    if cost < best:
        return _FOR_THE_OTHERS
    if cost.siblings > best.siblings:
        return f"has room, but has a sub-job of {request.group} already"
    if cost.distance > best.distance:
        return "has room, but is farther from the other sub-jobs"
    if cost.left > best.left:
        return f"has room, but fits less closely than {chosen}"
    return f"has as much room as {chosen}, which comes first by name"
