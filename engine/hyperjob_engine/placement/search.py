"""Assignment when room is short: a search of alternatives, within a fixed number of steps.

The search is exact on small cases. Its bound is a number of steps, not a time: equal inputs give
equal outputs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import Final

from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom, greedy, ordered, preference_cost

_STEPS: Final = 4000
_DOMAIN_SETS: Final = 400
_FEWEST_SETS: Final = 4
_PLACINGS: Final = 5_000  # sub-jobs times domain sets
_SEARCHED: Final = 200  # sub-jobs; for more of them the greedy assignment is the result


def assign(
    requests: Sequence[PlacementRequest], room: FreeRoom, *, max_domains: int | None, least: int = 0
) -> FreeRoom:
    """Return the room after an assignment of as many requests as possible, preferences first.

    It may assign none if fewer than `least` fit. With `max_domains` its `free` has the clusters
    of the chosen set alone. `room` stays as it is.
    """
    if max_domains is None:
        return _assign_freely(requests, room)
    best: FreeRoom | None = None
    best_score: tuple[int, int] | None = None
    for allowed, most in _domain_sets(requests, room, max_domains):
        if most < least:
            break
        trial = room.copy()
        trial.free = {name: free for name, free in room.free.items() if name in allowed}
        trial = _assign_freely(requests, trial)
        score = len(requests) - len(trial.assigned), preference_cost(requests, trial.assigned)
        if best_score is None or score < best_score:
            best, best_score = trial, score
        if best_score <= (len(requests) - most, 0):
            break  # the sets are sorted: no later one holds more
    return best if best is not None else room


def _assign_freely(requests: Sequence[PlacementRequest], room: FreeRoom) -> FreeRoom:
    """Return the room after an assignment to any of its clusters: greedy, then by search."""
    trial = room.copy()
    greedy(requests, trial)
    if len(trial.assigned) == len(requests) or len(requests) > _SEARCHED:
        return trial
    if len({request.kind for request in requests}) == 1:
        return trial  # requests of one kind: no order of them is better
    return _Search(requests, room, trial).run()


class _Search:
    """Depth-first search for an assignment of more requests than the one found so far."""

    def __init__(
        self, requests: Sequence[PlacementRequest], room: FreeRoom, found: FreeRoom
    ) -> None:
        self._room = room.copy()
        self._requests = [
            request for request in ordered(requests, room) if any(room.ranked(request))
        ]
        self._best = found
        self._steps = _STEPS

    def run(self) -> FreeRoom:
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
    requests: Sequence[PlacementRequest], room: FreeRoom, max_domains: int
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


def _holds(kinds: Sequence[PlacementRequest], room: FreeRoom, name: str) -> list[int]:
    """Return how many requests of each kind, alone, a cluster has room for."""
    free = room.free[name]
    return [
        min(
            (max(0, free.get(r, 0)) // amount for r, amount in kind.demand.items() if amount > 0),
            default=_PLACINGS,
        )
        if kind.allows(name)
        else 0
        for kind in kinds
    ]


def _bound(counts: Sequence[int], holds: Sequence[Sequence[int]]) -> int:
    """Return an upper bound of the requests that a set of clusters can take, kind by kind."""
    return sum(
        min(count, sum(held[position] for held in holds)) for position, count in enumerate(counts)
    )
