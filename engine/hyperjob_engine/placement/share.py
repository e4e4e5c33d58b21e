"""The built-in splitter: it shares accelerators out over clusters, one sub-job for each cluster.

Its rules in order: the preferred clusters alone, if they can hold all accelerators; as few clusters
as possible; as many preferred ones as possible, the earlier the better; clusters near each other;
shares as equal as possible; the least unused rest. Preferred clusters are filled in their order,
the others share the rest. The choice is exact if there are few combinations, else a good one. Calls
are independent of each other.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

from hyperjob_engine.model.request import (
    Kind,
    PlacementRequest,
    Tier,
    in_one_bundle,
    precedence,
    request_of_all,
)
from hyperjob_engine.placement.room import Room, whereabouts
from hyperjob_engine.resources import subtract, times

_COMBINATIONS: Final = 5000


class _Cost(NamedTuple):
    """The cost of a set of clusters, the most important part first: the order of the rules above.

    `others` are the clusters that are not preferred, `ranks` the sum of the places in the list of
    preferred ones. `spread` is the difference between the largest and the smallest share on
    `others`, and `left` the pods for which the set has room beyond the split.
    """

    others: int
    ranks: int
    distance: int
    spread: int
    left: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The accelerators of one kind to share out, and the requests of a sub-job's pods.

    A sub-job has `fixed` accelerators in the pods of `like`, its request without the scaled task,
    and `per_pod` in each `pod` of that task. All pods of a sub-job are within one HyperNode of
    `tier`.
    """

    like: PlacementRequest
    accelerators: int
    kind: str
    fixed: int
    per_pod: int
    pod: Kind
    tier: Tier | None = None

    def request(self, pods: int, name: str = "") -> PlacementRequest:
        """Return the request of a sub-job with so many pods in the scaled task."""
        items = sorted((*self.like.pods, (self.pod, pods)), key=lambda pair: precedence(pair[0]))
        demand, bundled = request_of_all(items), in_one_bundle(items, self.tier)
        return replace(self.like, name=name, demand=demand, pods=bundled)

    def pods_of(self, parts: int) -> int | None:
        """Return the scaled pods of `parts` sub-jobs together; None if not a whole number."""
        pods, rest = divmod(self.accelerators - parts * self.fixed, self.per_pod)
        return pods if not rest and pods >= parts else None

    @property
    def most_parts(self) -> int:
        """Return the greatest possible number of sub-jobs, each with one pod in the scaled task."""
        return self.accelerators // (self.fixed + self.per_pod)


@dataclass(frozen=True, slots=True)
class SplitShare:
    """A sub-job of an automatic split: its cluster, and its pods in the scaled task."""

    cluster: str
    pods: int


def capacities(wish: Wish, room: Room) -> dict[str, int]:
    """Return the most scaled pods of a sub-job, for each cluster that can hold one."""
    return {name: _most(wish, room, name) for name in sorted(room.ranked(wish.request(1)))}


def share(wish: Wish, room: Room, *, max_domains: int | None) -> tuple[SplitShare, ...]:
    """Return the shares of the accelerators on clusters with room; empty if they do not fit.

    Clusters in use by `room` count as domains already.
    """
    capacity, like = capacities(wish, room), wish.like
    preferred = [name for name in like.preferred if name in capacity]
    pools = [preferred, list(capacity)] if preferred and not like.required else [list(capacity)]
    for pool in pools:
        chooser = _Chooser(wish, room, {name: capacity[name] for name in pool}, max_domains)
        found = chooser.choose()
        if found:
            return found
    return ()


def largest_clusters(
    capacity: Mapping[str, int], room: Room, *, max_domains: int | None
) -> list[str]:
    """Return the clusters, at most `max_domains`, that together hold most; the largest first."""
    slots = _slots(room, max_domains)
    chosen = []
    for name in sorted(capacity, key=lambda name: (-capacity[name], name)):
        if name not in room.domains:
            if slots is not None and slots <= 0:
                continue
            slots = None if slots is None else slots - 1
        chosen.append(name)
    return chosen


class _Chooser:
    """The choice among the clusters of one pool; `capacity` is the most scaled pods on each.

    In all methods `parts` is the number of sub-jobs, one on each cluster of a set `names`, and
    `pods` is the number of scaled pods of all of them together.
    """

    def __init__(
        self, wish: Wish, room: Room, capacity: Mapping[str, int], max_domains: int | None
    ) -> None:
        self._wish = wish
        self._room = room
        self._capacity = capacity
        self._slots = _slots(room, max_domains)
        self._largest = largest_clusters(capacity, room, max_domains=max_domains)
        self._used = [whereabouts(room.clusters[n]) for n in room.domains if n in room.free]
        self._where = {name: whereabouts(room.clusters[name]) for name in capacity}

    def choose(self) -> tuple[SplitShare, ...]:
        """Return the best shares of the fewest clusters."""
        for parts in range(1, min(len(self._largest), self._wish.most_parts) + 1):
            pods = self._wish.pods_of(parts)
            if pods is None or self._sum(self._largest[:parts]) < pods:
                continue
            sets = (names for names in self._sets(parts, pods) if self._holds(names, pods))
            best = min(sets, key=lambda names: self._cost(names, pods))
            return self._shares(best, pods)
        return ()

    def _sets(self, parts: int, pods: int) -> Iterator[tuple[str, ...]]:
        """Yield the sets of clusters to compare; at least one of them holds all pods."""
        yield tuple(self._largest[:parts])
        if comb(len(self._capacity), parts) <= _COMBINATIONS:
            yield from combinations(self._capacity, parts)
            return
        places = {place for where in self._where.values() for place in where}
        for place in [None, *sorted(places)]:
            near = [name for name in self._capacity if place is None or place in self._where[name]]
            yield tuple(self._compose(near, parts, pods))

    def _compose(self, near: Sequence[str], parts: int, pods: int) -> list[str]:
        """Return as many preferred clusters as the number allows, and the best of the others.

        They are a candidate: whether they hold the pods is asked afterwards.
        """
        chosen: list[str] = []
        for name in self._wish.like.preferred:
            if name not in self._capacity or len(chosen) == parts:
                continue
            others = [other for other in self._largest if other not in (*chosen, name)]
            trial = [*chosen, name, *others[: parts - len(chosen) - 1]]
            if len(trial) == parts and self._sum(trial) >= pods:
                chosen.append(name)
        left = parts - len(chosen)
        if not left:
            return chosen
        each = -(-max(left, pods - self._sum(chosen)) // left)
        rest = sorted(
            (name for name in near if name not in chosen),
            key=lambda name: (self._capacity[name], name),
        )
        ample = [name for name in rest if self._capacity[name] >= each]
        return [*chosen, *(ample[:left] if len(ample) >= left else rest[-left:])]

    def _holds(self, names: Sequence[str], pods: int) -> bool:
        """Return whether as many sub-jobs as clusters have `pods`, with room, within maxDomains."""
        if (
            self._slots is not None
            and sum(n not in self._room.domains for n in names) > self._slots
        ):
            return False
        return self._wish.pods_of(len(names)) == pods <= self._sum(names)

    def _sum(self, names: Sequence[str]) -> int:
        return sum(self._capacity[name] for name in names)

    def _cost(self, names: Sequence[str], pods: int) -> _Cost:
        preferred = self._wish.like.preferred
        tiers = [preferred.index(n) if n in preferred else len(preferred) for n in names]
        others = [s.pods for s in self._shares(names, pods) if s.cluster not in preferred]
        return _Cost(
            others=tiers.count(len(preferred)),
            ranks=sum(tiers),
            distance=self._distance(names),
            spread=max(others) - min(others) if others else 0,
            left=self._sum(names) - pods,
            names=tuple(sorted(names)),
        )

    def _distance(self, names: Sequence[str]) -> int:
        """Return how many of provider, region and zone the clusters do not have in common."""
        places = [*self._used, *(self._where[name] for name in names)]
        common = set(places[0]).intersection(*places[1:])
        return max(map(len, places)) - len(common) if len(places) > 1 else 0

    def _shares(self, names: Sequence[str], pods: int) -> tuple[SplitShare, ...]:
        """Return shares: preferred clusters are filled in order, the others share the rest equally.

        Each cluster gets at least one pod.
        """
        first = [name for name in self._wish.like.preferred if name in names]
        others = sorted(
            (name for name in names if name not in first),
            key=lambda name: (-self._capacity[name], name),
        )
        given = []
        for position, name in enumerate(first, start=1):
            amount = min(self._capacity[name], pods - (len(names) - position))
            given.append(SplitShare(name, amount))
            pods -= amount
        return (*given, *_equally([(name, self._capacity[name]) for name in others], pods))


def _equally(clusters: Sequence[tuple[str, int]], pods: int) -> list[SplitShare]:
    """Share pods as equally as the capacities, the largest first, allow; larger ones get more."""
    found = []
    for left in range(len(clusters), 0, -1):
        name, capacity = clusters[left - 1]
        amount = min(capacity, pods // left)
        found.append(SplitShare(name, amount))
        pods -= amount
    return found[::-1]


def _slots(room: Room, max_domains: int | None) -> int | None:
    """Return how many clusters may be used beside those in use by `room`; None: any number."""
    return None if max_domains is None else max(0, max_domains - len(room.domains))


def _most(wish: Wish, room: Room, name: str) -> int:
    """Return the most pods of a sub-job on a cluster that can hold the smallest one."""
    free = subtract(room.free[name], wish.like.demand)
    most = times(free, dict(wish.pod.request), default=0)

    def crowded(pods: int) -> bool:
        return not room.nodes_hold(name, wish.request(pods).pods)

    return bisect_left(range(1, most + 1), True, key=crowded)
