"""Assignment when room is short: looks back, within a fixed number of steps.

Exact on small cases. The bound is on steps, never on time, so that equal inputs give equal outputs.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import Final

from controller.model.observed import Cluster
from controller.model.resources import fits
from controller.placement.assign import Request, Room, greedy, ordered, preference_cost

_STEPS: Final = 4000
_DOMAIN_SETS: Final = 400
_SEARCHED: Final = 200  # sub-jobs; beyond it the greedy assignment stands


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


def _domain_sets(
    requests: Sequence[Request], room: Room, max_domains: int
) -> Iterator[frozenset[str]]:
    """Yield sets of clusters to try, those in use always among them; the likeliest first."""
    used = frozenset(room.domains)
    slots = max_domains - len(used)
    pool = sorted(
        (name for name in room.free if name not in used),
        key=lambda name: _promise(requests, room.clusters[name]),
    )
    if slots <= 0 or not pool:
        yield used
        return
    size = min(slots, len(pool))
    while comb(len(pool), size) > _DOMAIN_SETS and len(pool) > size + 1:
        pool.pop()
    for chosen in islice(combinations(pool, size), _DOMAIN_SETS):
        yield used.union(chosen)


def _promise(requests: Sequence[Request], cluster: Cluster) -> tuple[int, int, str]:
    """Rank a cluster by how many requests it could take, then by their preference."""
    able = [
        request
        for request in requests
        if request.allows(cluster.name) and fits(request.demand, cluster.free)
    ]
    return -len(able), sum(request.tier(cluster.name) for request in able), cluster.name
