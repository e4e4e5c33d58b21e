"""The review of placements: whether a pinned sub-job still fits, or to which cluster it moves.

Hours may pass between placement and release. A sub-job stays pinned to its cluster as long as the
cluster has room.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.explain import Shortage
from hyperjob_engine.placement.place import Placement, place
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import fits, total


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPlace:
    """A sub-job that no member has received, and the cluster to which it is pinned.

    `held`: its gate is closed, and the controller reserves its room. `released`: the queue has
    released it. `fresh`: it was created a moment ago, when its room was certain.
    """

    request: PlacementRequest
    pin: str
    held: bool
    released: bool
    fresh: bool = False

    @property
    def name(self) -> str:
        """Return the name of the sub-job."""
        return self.request.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The sub-jobs that are ready, the new clusters of those that move, and those without room."""

    ready: frozenset[str] = frozenset()
    moves: Mapping[str, str] = field(default_factory=dict)
    short: Mapping[str, Shortage] = field(default_factory=dict)


def review(
    pinned_places: Sequence[PinnedPlace],
    room: Room,
    *,
    standing: Iterable[tuple[str, str]],
    max_domains: int | None,
) -> Review:
    """Compare every pinned sub-job with the resources that are free without its own reservation.

    `room` is what all reservations leave; `standing` are (group, cluster) of the sub-jobs that stay
    where they are in any case.
    """
    if not pinned_places:
        return Review()
    standing = list(standing)
    given = room.copy()
    for pinned in pinned_places:
        if pinned.held:
            given.hold(pinned.request, pinned.pin, -1)
    kept, unsettled, leaving, left = _sort(pinned_places, given)
    settled = [(pinned.request.group, pinned.pin) for pinned in kept]
    first = _place(leaving, left, [*standing, *settled], max_domains)
    waits = {
        pinned.name: Shortage(
            text=f"waits until the status of {pinned.pin} counts the pods that have just started"
            " there"
        )
        for pinned in unsettled
    }
    if first.unplaced and len(leaving) < len(pinned_places):
        again = _place(pinned_places, given, standing, max_domains)
        if len(again.assigned) > len(kept) + len(first.assigned):
            return _rearranged(pinned_places, again)
    ready = {pinned.name for pinned in kept if pinned.held} - waits.keys()
    return Review(ready=frozenset(ready), moves=first.assigned, short={**waits, **first.unplaced})


def _sort(
    pinned_places: Sequence[PinnedPlace], given: Room
) -> tuple[list[PinnedPlace], list[PinnedPlace], list[PinnedPlace], Room]:
    """Return the sub-jobs that stay, the uncertain ones of them, those that leave, and the room.

    The room is what those that stay leave of the given one.
    """
    left = given.copy()
    kept, unsettled, leaving = [], [], []
    for pinned in sorted(pinned_places, key=lambda pinned: not pinned.released):
        free = left.free.get(pinned.pin)
        if free is None or pinned.pin in pinned.request.excluded:
            leaving.append(pinned)
            continue
        demand, settling = pinned.request.demand, left.clusters[pinned.pin].settling
        certain = not pinned.held or fits(demand, free)
        if not certain and not fits(demand, total((free, settling))):
            leaving.append(pinned)
            continue
        kept.append(pinned)
        if not certain and not pinned.fresh:
            unsettled.append(pinned)
        if pinned.held:
            left.hold(pinned.request, pinned.pin)
    return kept, unsettled, leaving, left


def _place(
    pinned_places: Sequence[PinnedPlace],
    room: Room,
    standing: Sequence[tuple[str, str]],
    max_domains: int | None,
) -> Placement:
    requests = [pinned.request for pinned in pinned_places]
    return place(requests, room.beside(standing), max_domains=max_domains)


def _rearranged(pinned_places: Sequence[PinnedPlace], placement: Placement) -> Review:
    """Return the review after a new placement of all: those on their pinned cluster stay there."""
    pins = {pinned.name: pinned.pin for pinned in pinned_places}
    held = {pinned.name for pinned in pinned_places if pinned.held}
    same = {name for name, cluster in placement.assigned.items() if cluster == pins[name]}
    return Review(
        ready=frozenset(same & held),
        moves={name: to for name, to in placement.assigned.items() if name not in same},
        short=placement.unplaced,
    )
