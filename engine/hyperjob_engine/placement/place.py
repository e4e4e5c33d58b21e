"""Placement of the sub-jobs of a HyperJob: the clusters, or the exact shortage.

A gang is placed as a whole or not at all. Calls are independent of each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import assign
from hyperjob_engine.placement.explain import Shortage, explain, explain_overflow
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.placement.room import Room
from hyperjob_engine.reasons.reason import ClusterTrouble

NEVER: Final = " and too little even on empty clusters"
TOO_LARGE: Final = "too large for all usable clusters, even empty: "
_MAY_PASS: Final = frozenset(
    {ClusterTrouble.NOT_READY, ClusterTrouble.NO_RESOURCE_SUMMARY, ClusterTrouble.NO_READY_NODE}
)
"""Troubles of a cluster whose resources are not known until they pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The cluster of each placed sub-job, and the shortage of each other one.

    `overflow` is why sub-jobs are on no preferred cluster.
    """

    assigned: Mapping[str, str] = field(default_factory=dict)
    overflow: Mapping[str, str] = field(default_factory=dict)
    unplaced: Mapping[str, Shortage] = field(default_factory=dict)
    room_for: int = 0


def place(
    requests: Sequence[PlacementRequest],
    room: Room,
    *,
    max_domains: int | None = None,
    minimum: int = 0,
) -> Placement:
    """Place as many requests as have room, or none if these are fewer than `minimum`.

    The clusters of sub-jobs that stand in `room` count as domains, and other sub-jobs of their
    group prefer other clusters. `room` stays as it is.
    """
    if not requests:
        return Placement()
    done = assign(requests, room, max_domains=max_domains)
    alike: dict[tuple[object, ...], Shortage] = {}
    short: dict[str, Shortage] = {}
    for request in requests:
        if request.name not in done.assigned:
            if request.kind not in alike:
                alike[request.kind] = explain(request, done, max_domains=max_domains)
            short[request.name] = alike[request.kind]
    if len(done.assigned) >= minimum:
        overflow = {
            request.name: explain_overflow(request, done, max_domains=max_domains)
            for request in requests
            if request.preferred
            and done.assigned.get(request.name, request.preferred[0]) not in request.preferred
        }
        return Placement(
            assigned=done.assigned,
            overflow=overflow,
            unplaced=short,
            room_for=len(done.assigned),
        )
    until = f"waits until {minimum} sub-jobs can be placed together"
    waiting = {
        name: Shortage(text=f"has room on {cluster}, {until}", in_gang=True)
        for name, cluster in done.assigned.items()
    }
    return Placement(unplaced={**short, **waiting}, room_for=len(done.assigned))


def fits_never(
    requests: Sequence[PlacementRequest],
    room: Room,
    *,
    minimum: int,
    max_domains: int | None,
) -> bool:
    """Return whether fewer than `minimum` requests have room on the clusters when these are empty.

    It is the one answer to the question whether sub-jobs can ever run: the status has it as the
    reason ExceedsClusters. What may change without a new cluster, a larger one or another spec
    counts as room: a cluster that is excluded or has closed the queue, and every cluster that a
    request may use while its resources are not known.
    """
    if len(requests) < minimum:
        return False  # the others wait for something else
    asked, known = [*map(_unhindered, requests)], room.clusters
    unknown = [
        each.name for each in known.values() if each.trouble and each.trouble.code in _MAY_PASS
    ]
    if any(request.allows(name) for request in asked for name in unknown):
        return False
    empty = when_empty(room).beside(())
    return len(assign(asked, empty, max_domains=max_domains).assigned) < minimum


def when_empty(room: Room) -> Room:
    """Return the room on the clusters when these are empty."""
    whole = {name: each.allocatable for name, each in room.clusters.items()}
    return room.emptied(Vacating.ALL, whole)


def _unhindered(request: PlacementRequest) -> PlacementRequest:
    """Return the request with all clusters that its spec allows."""
    if not request.excluded:
        return request
    return replace(request, excluded=frozenset(), closed=None)
