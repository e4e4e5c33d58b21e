"""Assignment when room is short: looks back, within a fixed number of steps.

Exact on small cases. The bound is on steps, never on time, so that equal inputs give equal outputs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from math import comb
from typing import Final

from controller.model.request import Request
from controller.placement.assign import Room, greedy, ordered, preference_cost

_STEPS: Final = 4000
_DOMAIN_SETS: Final = 400
_FEWEST_SETS: Final = 4
_PLACINGS: Final = 5_000  # sub-jobs times domain sets
_SEARCHED: Final = 200  # sub-jobs; beyond it the greedy assignment is taken


def assign(requests: Sequence[Request], room: Room, *, max_domains: int | None) -> Room:
    """Return the room after placing as many requests as it can, preferences first."""
    if max_domains is None:
        return _assign_freely(requests, room)
    best: Room | None = None
    best_score: tuple[int, int] | None = None
    for allowed in _domain_sets(requests, room, max_domains):
        trial = room.copy()
        trial.free = {name: free for name, free in room.free.items() if name in allowed}
        trial = _assign_freely(requests, trial)
        score = len(requests) - len(trial.assigned), preference_cost(requests, trial.assigned)
        if best_score is None or score < best_score:
            best, best_score = trial, score
        if score == (0, 0):
            break
    return best if best is not None else room


def _assign_freely(requests: Sequence[Request], room: Room) -> Room:
    trial = room.copy()
    greedy(requests, trial)
    if len(trial.assigned) == len(requests) or len(requests) > _SEARCHED:
        return trial
    if len({request.kind for request in requests}) == 1:
        return trial  # like requests cannot do better: each cluster holds what it holds
    return _Search(requests, room, trial).run()


class _Search:
    """Depth-first search for an assignment of more requests than the one found so far."""

    def __init__(self, requests: Sequence[Request], room: Room, found: Room) -> None:
        self._room = room.copy()
        self._requests = [request for request in ordered(requests, room) if room.options(request)]
        self._best = found
        self._steps = _STEPS

    def run(self) -> Room:
        """Return the best assignment found within the steps."""
        self._descend(0)
        return self._best

    def _descend(self, depth: int) -> None:
        left = len(self._requests) - depth
        if len(self._room.assigned) + left <= len(self._best.assigned) or self._steps <= 0:
            return
        if not left:
            self._best = self._room.copy()
            return
        request = self._requests[depth]
        for cluster in self._room.ranked(request):
            self._steps -= 1
            self._room.put(request, cluster)
            self._descend(depth + 1)
            self._room.take(request)
            if len(self._best.assigned) == len(self._requests) or self._steps <= 0:
                return
        self._descend(depth + 1)


def _domain_sets(requests: Sequence[Request], room: Room, max_domains: int) -> list[frozenset[str]]:
    """Return the sets of clusters to try, those in use always among them; the likeliest first."""
    used = frozenset(room.domains)
    slots = max_domains - len(used)
    counts = Counter(request.kind for request in requests)
    kinds = list({request.kind: request for request in requests}.values())
    holds = {name: _holds(kinds, room, name) for name in room.free}
    pool = sorted(
        (name for name in room.free if name not in used),
        key=lambda name: (
            -_bound(kinds, counts, [holds[name]]),
            sum(request.tier(name) for request in kinds),
            name,
        ),
    )
    if slots <= 0 or not pool:
        return [used]
    size = min(slots, len(pool))
    while comb(len(pool), size) > _DOMAIN_SETS and len(pool) > size + 1:
        pool.pop()
    sets = [used.union(chosen) for chosen in islice(combinations(pool, size), _DOMAIN_SETS)]
    # Stable: among sets that could hold as many, those of the most promising clusters come first.
    sets.sort(key=lambda names: -_bound(kinds, counts, [holds[n] for n in names if n in holds]))
    return sets[: max(_FEWEST_SETS, _PLACINGS // len(requests))]


def _holds(kinds: Sequence[Request], room: Room, name: str) -> list[int]:
    """Count how many requests of each kind a cluster could hold if it held nothing else."""
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


def _bound(
    kinds: Sequence[Request],
    counts: Mapping[tuple[object, ...], int],
    holds: Sequence[Sequence[int]],
) -> int:
    """Bound from above how many requests a set of clusters can take."""
    return sum(
        min(counts[kind.kind], sum(held[position] for held in holds))
        for position, kind in enumerate(kinds)
    )
