"""Placement of the sub-jobs of a HyperJob: the clusters, or the exact shortage.

A gang is placed as a whole or not at all. Calls are independent of each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.explain import explain, explain_overflow
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.placement.search import assign
from hyperjob_engine.placement.slots import Slots
from hyperjob_engine.reasons.shortage import Overflow, Shortage, ShortageCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The cluster of each placed sub-job, and the shortage of each other one.

    `overflow` is why sub-jobs are on no preferred cluster. `never`: even empty clusters have no
    room for as many as must be placed together.
    """

    assigned: Mapping[str, str] = field(default_factory=dict)
    overflow: Mapping[str, Overflow] = field(default_factory=dict)
    unplaced: Mapping[str, Shortage] = field(default_factory=dict)
    room_for: int = 0
    never: bool = False


def place(
    requests: Sequence[PlacementRequest],
    clusters: Sequence[Cluster],
    *,
    standing: Iterable[tuple[str, str]] = (),
    max_domains: int | None = None,
    minimum: int = 0,
) -> Placement:
    """Place as many requests as have room, or none if these are fewer than `minimum`.

    `standing` are (group, cluster) of sub-jobs that stay where they are: their clusters count as
    domains, and other sub-jobs of their group prefer other clusters.
    """
    if not requests:
        return Placement()
    room = FreeRoom.of(clusters, standing)
    done = assign(requests, room, max_domains=max_domains)
    done.free = {**room.free, **done.free}  # with `max_domains` it lacks the other clusters
    short = {
        request.name: explain(request, clusters, done, max_domains=max_domains)
        for request in requests
        if request.name not in done.assigned
    }
    if len(done.assigned) >= minimum:
        overflow = {
            request.name: explain_overflow(request, clusters, done, max_domains=max_domains)
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
    waiting = {
        name: Shortage(
            code=ShortageCode.WAITS_FOR_GANG,
            cluster=cluster,
            together=minimum,
        )
        for name, cluster in done.assigned.items()
    }
    return Placement(
        unplaced={**short, **waiting},
        room_for=len(done.assigned),
        never=minimum > 1
        and not could_hold(
            requests, room.clusters.values(), minimum=minimum, max_domains=max_domains
        ),
    )


def could_hold(
    requests: Sequence[PlacementRequest],
    clusters: Iterable[Cluster],
    *,
    minimum: int,
    max_domains: int | None,
) -> bool:
    """Return whether `minimum` requests have room on the usable clusters when these are empty.

    A Queue that a cluster has closed counts as open: its administrator may open it again.
    """
    known = tuple(clusters)
    slots = Slots(known)
    slots.vacate(Vacating.ALL)
    free = {each.name: each.allocatable for each in known if each.usable}
    empty = FreeRoom.of(known, (), free=free, slots=slots)
    return (
        len(assign([*map(_opened, requests)], empty, max_domains=max_domains).assigned) >= minimum
    )


def _opened(request: PlacementRequest) -> PlacementRequest:
    if request.closed is None:
        return request
    return replace(request, excluded=request.excluded - request.closed.clusters, closed=None)
