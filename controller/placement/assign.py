"""Assignment of sub-jobs to clusters by preference, spread, nearness and best fit.

Greedy, and good when there is room. It never looks back; `search` does when room is short.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller.model.observed import Cluster
from controller.model.request import Request
from controller.model.resources import Resources, accelerator_of, fits, subtract
from controller.placement.slots import Slots

_FAR: Final = 3


class Cost(NamedTuple):
    """What speaks against a cluster, most important first; `left` is what stays unused there."""

    tier: int
    siblings: int
    distance: int
    left: int
    name: str


@dataclass(slots=True)
class Room:
    """Free resources while an assignment is being made; `put` and `take` change it."""

    clusters: Mapping[str, Cluster]
    free: dict[str, Resources]
    slots: Slots
    occupied: dict[tuple[str, str], int] = field(default_factory=dict)
    domains: dict[str, int] = field(default_factory=dict)
    assigned: dict[str, str] = field(default_factory=dict)
    _near: frozenset[tuple[str, ...]] | None = None

    @classmethod
    def of(cls, clusters: Iterable[Cluster], standing: Iterable[tuple[str, str]]) -> "Room":
        """Make room from usable clusters and (group, cluster) of sub-jobs that stand already."""
        usable = {cluster.name: cluster for cluster in clusters if cluster.usable}
        free = {name: cluster.free for name, cluster in usable.items()}
        room = cls(usable, free, Slots(usable.values()))
        for cluster in usable.values():
            room.slots.add(cluster.name, cluster.reserved_pods)
        for group, where in standing:
            room.occupied[group, where] = room.occupied.get((group, where), 0) + 1
            room.domains[where] = room.domains.get(where, 0) + 1
        return room

    def copy(self) -> "Room":
        """Return an independent copy."""
        return Room(
            self.clusters,
            dict(self.free),
            self.slots.copy(),
            dict(self.occupied),
            dict(self.domains),
            dict(self.assigned),
        )

    def options(self, request: Request) -> list[str]:
        """Return the clusters with room for a request, in no order that matters."""
        return [
            name
            for name, free in self.free.items()
            if request.allows(name)
            and fits(request.demand, free)
            and self.slots.crowding(name, request.pods) is None
        ]

    def ranked(self, request: Request) -> list[str]:
        """Return the clusters with room for a request, best first."""
        measure = accelerator_of(request.demand) or "cpu"
        return sorted(self.options(request), key=lambda name: self._cost(request, name, measure))

    def best(self, request: Request) -> str | None:
        """Return the best cluster with room for a request."""
        measure = accelerator_of(request.demand) or "cpu"
        return min(
            self.options(request),
            key=lambda name: self._cost(request, name, measure),
            default=None,
        )

    def put(self, request: Request, cluster: str) -> None:
        """Assign a request."""
        self.free[cluster] = subtract(self.free[cluster], request.demand)
        self.slots.add(cluster, request.pods)
        key = request.group, cluster
        self.occupied[key] = self.occupied.get(key, 0) + 1
        if cluster not in self.domains:
            self._near = None
        self.domains[cluster] = self.domains.get(cluster, 0) + 1
        self.assigned[request.name] = cluster

    def take(self, request: Request) -> None:
        """Undo `put`."""
        cluster = self.assigned.pop(request.name)
        free = dict(self.free[cluster])
        for name, amount in request.demand.items():
            free[name] = free.get(name, 0) + amount
        self.free[cluster] = free
        self.slots.add(cluster, request.pods, -1)
        self.occupied[request.group, cluster] -= 1
        self.domains[cluster] -= 1
        if not self.domains[cluster]:
            del self.domains[cluster]
            self._near = None

    def cost(self, request: Request, name: str) -> Cost:
        """Return what speaks against a cluster with room for a request."""
        return self._cost(request, name, accelerator_of(request.demand) or "cpu")

    def _cost(self, request: Request, name: str, measure: str) -> Cost:
        left = self.free[name].get(measure, 0) - request.demand.get(measure, 0)
        siblings = self.occupied.get((request.group, name), 0)
        return Cost(request.tier(name), siblings, self._distance(name), left, name)

    def _distance(self, name: str) -> int:
        """Tell how far a cluster is from those in use: 0 in one zone … 3 with another provider."""
        if self._near is None:
            used = (self.clusters[domain] for domain in self.domains if domain in self.clusters)
            self._near = frozenset(where for cluster in used for where in whereabouts(cluster))
        if not self._near or name in self.domains:
            return 0
        shared = sum(where in self._near for where in whereabouts(self.clusters[name]))
        return _FAR - shared


def greedy(requests: Sequence[Request], room: Room) -> None:
    """Put every request where it costs least now; those without room are left out."""
    for request in ordered(requests, room):
        cluster = room.best(request)
        if cluster is not None:
            room.put(request, cluster)


def ordered(requests: Sequence[Request], room: Room) -> list[Request]:
    """Sort requests: fewest choices first, then the largest, then as the spec has them."""
    choices: dict[tuple[object, ...], int] = {}
    keyed = []
    for position, request in enumerate(requests):
        kind = request.kind
        if kind not in choices:
            choices[kind] = len(room.options(request))
        measure = accelerator_of(request.demand) or "cpu"
        keyed.append((choices[kind], -request.demand.get(measure, 0), position))
    return [requests[position] for _, _, position in sorted(keyed)]


def preference_cost(requests: Iterable[Request], assigned: Mapping[str, str]) -> int:
    """Sum up how far down their preferences requests had to go."""
    return sum(
        request.tier(assigned[request.name]) for request in requests if request.name in assigned
    )


def whereabouts(cluster: Cluster) -> list[tuple[str, ...]]:
    """Return the places a cluster is in, from wide to narrow; an unknown one ends the list."""
    steps = (cluster.provider, cluster.region, cluster.zone)
    depth = next((number for number, step in enumerate(steps) if not step), len(steps))
    return [steps[: number + 1] for number in range(depth)]
