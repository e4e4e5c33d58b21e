"""Placement of the sub-jobs of a HyperJob: the clusters, or the exact shortage.

A gang is placed as a whole or not at all. The assignment by preference, spread, nearness and best
fit is greedy, which is good while there is room. Where room is short it tries alternatives: exact
on small cases, and within a number of steps, not of seconds: equal inputs give equal outputs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from math import comb
from typing import Final

from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.explain import Shortage, explain, explain_overflow
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.placement.room import Cost, Room
from hyperjob_engine.reasons.reason import ClusterTrouble
from hyperjob_engine.resources import times

_STEPS: Final = 4000
_DOMAIN_SETS: Final = 400
_FEWEST_SETS: Final = 4
_PLACINGS: Final = 5_000  # sub-jobs times domain sets
_SEARCHED: Final = 200  # sub-jobs; for more of them the greedy assignment is the result

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


def assign(
    requests: Sequence[PlacementRequest], room: Room, *, max_domains: int | None, least: int = 0
) -> Room:
    """Return the room after an assignment of as many requests as possible, preferences first.

    It may assign none if fewer than `least` fit. `room` stays as it is.
    """
    if max_domains is None:
        return _assign_freely(requests, room)
    best: Mapping[str, str] = {}
    best_score: tuple[int, int] | None = None
    for allowed, most in _domain_sets(requests, room, max_domains):
        if most < least:
            break
        found = _assign_freely(requests, room.within(allowed)).assigned
        score = len(requests) - len(found), _preference_cost(requests, found)
        if best_score is None or score < best_score:
            best, best_score = found, score
        if best_score <= (len(requests) - most, 0):
            break  # the sets are sorted: no later one holds more
    made, named = room.copy(), {request.name: request for request in requests}
    for name, cluster in best.items():
        made.put(named[name], cluster)
    return made


def _assign_freely(requests: Sequence[PlacementRequest], room: Room) -> Room:
    """Return the room after an assignment to any of its clusters: greedy, then by search.

    Those with the fewest choices go first, then the largest, then as the spec has them.
    """
    trial, kinds = room.copy(), {request.kind: request for request in requests}
    costs = {kind: room.costs(request) for kind, request in kinds.items()}
    choices = {kind: len(each) for kind, each in costs.items()}
    ordered = sorted(
        requests, key=lambda each: (choices[each.kind], -each.demand.get(each.measure, 0))
    )
    _greedy(ordered, trial, costs)
    if len(trial.assigned) == len(requests) or len(requests) > _SEARCHED:
        return trial
    if len(kinds) == 1:
        return trial  # requests of one kind: no order of them is better
    return _Search(ordered, room, trial).run()


class _Search:
    """Depth-first search for an assignment of more requests than the one found so far."""

    def __init__(self, requests: Sequence[PlacementRequest], room: Room, found: Room) -> None:
        self._room = room.copy()
        self._requests = [request for request in requests if any(room.ranked(request))]
        self._best = found
        self._steps = _STEPS

    def run(self) -> Room:
        """Return the best assignment found within the steps."""
        self._descend(0)
        return self._best

    def _descend(self, depth: int) -> None:
        """Try all clusters for the request at a depth, then leave it out; keep the best assignment.

        A branch ends where it cannot assign more requests than the best, and with the last step.
        """
        left = len(self._requests) - depth
        if len(self._room.assigned) + left <= len(self._best.assigned) or self._steps <= 0:
            return
        if not left:
            self._best = self._room.copy()
            return
        request = self._requests[depth]
        for cluster in list(self._room.ranked(request)):
            self._steps -= 1
            self._room.put(request, cluster)
            self._descend(depth + 1)
            self._room.take(request)
            if len(self._best.assigned) == len(self._requests) or self._steps <= 0:
                return
        self._descend(depth + 1)


def _domain_sets(
    requests: Sequence[PlacementRequest], room: Room, max_domains: int
) -> Iterator[tuple[frozenset[str], int]]:
    """Yield the sets of clusters to try, with a bound of the requests of each; the largest first.

    Clusters in use are in every set. The generator is lazy: mostly the first set is enough.
    """
    used = frozenset(room.domains)
    slots = max_domains - len(used)
    kinds = list({request.kind: request for request in requests}.values())
    counted = Counter(request.kind for request in requests)
    counts = [counted[request.kind] for request in kinds]
    holds = {name: _holds(kinds, room, name) for name in room.free}
    pool = sorted(
        (name for name in room.free if name not in used),
        key=lambda name: (
            -_bound(counts, [holds[name]]),
            sum(request.tier(name) for request in kinds),
            name,
        ),
    )
    if slots <= 0 or not pool:
        yield used, len(requests)
        return
    size = min(slots, len(pool))
    while comb(len(pool), size) > _DOMAIN_SETS and len(pool) > size + 1:
        pool.pop()
    always = [holds[name] for name in used if name in holds]
    first = tuple(pool[:size])
    most = _bound(counts, [*always, *(holds[name] for name in first)])
    alike = len(kinds) == 1  # then no set holds more than the first
    if alike:
        yield used.union(first), most
    sets = [
        (chosen, _bound(counts, [*always, *(holds[name] for name in chosen)]))
        for chosen in islice(combinations(pool, size), _DOMAIN_SETS)
    ]
    # Stable: among sets that could hold as many, those of the most promising clusters come first.
    sets.sort(key=lambda each: -each[1])
    tried = sets[: max(_FEWEST_SETS, _PLACINGS // len(requests))]
    for chosen, most in tried[1:] if alike else tried:
        yield used.union(chosen), most


def _holds(kinds: Sequence[PlacementRequest], room: Room, name: str) -> list[int]:
    """Return how many requests of each kind, alone, a cluster has room for."""
    free = room.free[name]
    return [
        times(free, kind.demand, default=_PLACINGS) if kind.allows(name) else 0 for kind in kinds
    ]


def _bound(counts: Sequence[int], holds: Sequence[Sequence[int]]) -> int:
    """Return an upper bound of the requests that a set of clusters can take, kind by kind."""
    return sum(
        min(count, sum(held[position] for held in holds)) for position, count in enumerate(counts)
    )


def _greedy(
    requests: Sequence[PlacementRequest],
    room: Room,
    costs: dict[tuple[object, ...], dict[str, Cost]],
) -> None:
    """Put every request on the cluster of least cost now; requests without room stay unassigned.

    `costs` are those of now, by kind.
    """
    kinds, near = {request.kind: request for request in requests}, room.near
    for request in requests:
        best = room.best(request, costs[request.kind])
        if best is None:
            continue
        room.put(request, best.name)
        if room.near != near:
            near = room.near
            costs = {each: room.costs(like) for each, like in kinds.items()}
            continue
        for each, like in kinds.items():  # the costs of other clusters are unchanged
            if best.name in costs[each] and room.may_hold(like, best.name):
                costs[each][best.name] = room.cost(like, best.name)
            else:
                costs[each].pop(best.name, None)


def _preference_cost(requests: Iterable[PlacementRequest], assigned: Mapping[str, str]) -> int:
    """Return the sum of the ranks of the assigned clusters among each request's preferences."""
    return sum(
        request.tier(assigned[request.name]) for request in requests if request.name in assigned
    )
