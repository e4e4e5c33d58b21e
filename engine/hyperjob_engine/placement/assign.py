"""Assignment of sub-jobs to clusters by preference, spread, nearness and best fit.

The algorithm is greedy, which is good while there is room. `search` tries alternatives when room
is short.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.slots import Slots
from hyperjob_engine.resources import Resources, fits, subtract, total

_FAR: Final = 3

RequestKind: TypeAlias = tuple[object, ...]
"""Equal for requests that placement treats alike."""


class Cost(NamedTuple):
    """The cost of a cluster, the most important part first; `left` is the unused rest."""

    tier: int
    moves: bool
    siblings: int
    distance: int
    left: int
    name: str


@dataclass(slots=True)
class FreeRoom:
    """The free resources during an assignment; `put` and `take` change them."""

    clusters: Mapping[str, Cluster]
    free: dict[str, Resources]
    slots: Slots
    occupied: dict[tuple[str, str], int] = field(default_factory=dict)
    domains: dict[str, int] = field(default_factory=dict)
    assigned: dict[str, str] = field(default_factory=dict)
    _near: frozenset[tuple[str, ...]] | None = None

    @classmethod
    def of(
        cls,
        clusters: Iterable[Cluster],
        standing: Iterable[tuple[str, str]],
        *,
        free: Mapping[str, Resources] | None = None,
        slots: Slots | None = None,
    ) -> "FreeRoom":
        """Return the room of usable clusters; `standing` are (group, cluster) of placed sub-jobs.

        `free` and `slots` replace the free resources and nodes of the clusters.
        """
        usable = {cluster.name: cluster for cluster in clusters if cluster.usable}
        if slots is None:
            slots = Slots(usable.values())
            for cluster in usable.values():
                slots.add(cluster.name, cluster.reserved_pods)
        if free is None:
            free = {name: cluster.free for name, cluster in usable.items()}
        room = cls(usable, dict(free), slots)
        for group, where in standing:
            room.occupied[group, where] = room.occupied.get((group, where), 0) + 1
            room.domains[where] = room.domains.get(where, 0) + 1
        return room

    def copy(self) -> "FreeRoom":
        """Return an independent copy."""
        return FreeRoom(
            self.clusters,
            dict(self.free),
            self.slots.copy(),
            dict(self.occupied),
            dict(self.domains),
            dict(self.assigned),
        )

    def options(self, request: PlacementRequest) -> list[str]:
        """Return the clusters with room for a request, in no particular order."""
        return [name for name in self.free if self.holds(request, name)]

    def holds(self, request: PlacementRequest, name: str) -> bool:
        """Return whether a cluster has room for a request."""
        return self.may_hold(request, name) and self.slots.holds(name, request.pods)

    def may_hold(self, request: PlacementRequest, name: str) -> bool:
        """Return whether a cluster may have room for a request, by sums: a quick check."""
        return (
            request.allows(name)
            and fits(request.demand, self.free[name])
            and self.slots.may_hold(name, request.pods)
        )

    def ranked(self, request: PlacementRequest) -> Iterator[str]:
        """Yield the clusters with room for a request, best first."""
        for cost in sorted(self.costs(request).values()):
            if self.slots.holds(cost.name, request.pods):
                yield cost.name

    def costs(self, request: PlacementRequest) -> dict[str, Cost]:
        """Return the cost of each cluster that may have room for a request."""
        return {
            name: self.cost(request, name) for name in self.free if self.may_hold(request, name)
        }

    def best(self, request: PlacementRequest, costs: dict[str, Cost]) -> Cost | None:
        """Return the least cost of a cluster that has room; drop those before it that have none.

        Only the nodes of the cheapest clusters are looked at one by one.
        """
        while costs:
            least = min(costs.values())
            if self.slots.holds(least.name, request.pods):
                return least
            del costs[least.name]
        return None

    def put(self, request: PlacementRequest, cluster: str) -> None:
        """Assign a request."""
        self.free[cluster] = subtract(self.free[cluster], request.demand)
        self.slots.add(cluster, request.pods)
        key = request.group, cluster
        self.occupied[key] = self.occupied.get(key, 0) + 1
        if cluster not in self.domains:
            self._near = None
        self.domains[cluster] = self.domains.get(cluster, 0) + 1
        self.assigned[request.name] = cluster

    def take(self, request: PlacementRequest) -> None:
        """Undo `put`."""
        cluster = self.assigned.pop(request.name)
        self.free[cluster] = total((self.free[cluster], request.demand))
        self.slots.add(cluster, request.pods, -1)
        self.occupied[request.group, cluster] -= 1
        self.domains[cluster] -= 1
        if not self.domains[cluster]:
            del self.domains[cluster]
            self._near = None

    def cost(self, request: PlacementRequest, name: str) -> Cost:
        """Return the cost of a cluster with room for a request."""
        measure = request.measure
        left = self.free[name].get(measure, 0) - request.demand.get(measure, 0)
        siblings = self.occupied.get((request.group, name), 0)
        moves = bool(request.last) and name != request.last
        distance = self._distance(name)
        return Cost(request.tier(name), moves, siblings, distance, left, name)

    @property
    def near(self) -> frozenset[tuple[str, ...]]:
        """Return the `whereabouts` of all clusters in use."""
        if self._near is None:
            used = (self.clusters[domain] for domain in self.domains if domain in self.clusters)
            self._near = frozenset(where for cluster in used for where in whereabouts(cluster))
        return self._near

    def _distance(self, name: str) -> int:
        """Return the distance to the clusters in use: 0 in one zone to 3 at another provider."""
        near = self.near
        if not near or name in self.domains:
            return 0
        return _FAR - sum(where in near for where in whereabouts(self.clusters[name]))


def greedy(requests: Sequence[PlacementRequest], room: FreeRoom) -> None:
    """Put every request on the cluster of least cost now; requests without room stay unassigned."""
    kinds = {request.kind: request for request in requests}
    costs, near = {kind: room.costs(request) for kind, request in kinds.items()}, room.near
    for kind, request in _in_order(requests, {kind: len(each) for kind, each in costs.items()}):
        best = room.best(request, costs[kind])
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


def ordered(requests: Sequence[PlacementRequest], room: FreeRoom) -> list[PlacementRequest]:
    """Sort requests: fewest choices first, then the largest, then as the spec has them."""
    kinds = {request.kind: request for request in requests}
    choices = {kind: len(room.costs(request)) for kind, request in kinds.items()}
    return [request for _, request in _in_order(requests, choices)]


def _in_order(
    requests: Sequence[PlacementRequest], choices: Mapping[RequestKind, int]
) -> list[tuple[RequestKind, PlacementRequest]]:
    """Pair requests with their kinds, in the order in which they are placed."""

    def key(pair: tuple[RequestKind, PlacementRequest]) -> tuple[int, int]:
        kind, request = pair
        return choices[kind], -request.demand.get(request.measure, 0)

    return sorted(((request.kind, request) for request in requests), key=key)


def preference_cost(requests: Iterable[PlacementRequest], assigned: Mapping[str, str]) -> int:
    """Return the sum of the ranks of the assigned clusters among each request's preferences."""
    return sum(
        request.tier(assigned[request.name]) for request in requests if request.name in assigned
    )


def whereabouts(cluster: Cluster) -> list[tuple[str, ...]]:
    """Return the paths (provider), (provider, region) and (provider, region, zone) of a cluster.

    An unknown part ends the list.
    """
    steps = (cluster.provider, cluster.region, cluster.zone)
    depth = next((number for number, step in enumerate(steps) if not step), len(steps))
    return [steps[: number + 1] for number in range(depth)]
