"""What the clusters have for sub-jobs while one decision is made.

A pass makes a room of the clusters that it has observed, and the queue engine one for each round.
All who ask what is free ask a room: placement, splits, queues, evictions, forecasts and `plan`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from typing import Final, NamedTuple

from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import Item, Items, PlacementRequest, counted
from hyperjob_engine.placement.ground import Ground, Vacating, ground_of
from hyperjob_engine.placement.packing import Unfit, overfull, unfit
from hyperjob_engine.resources import Resources, fits

_FAR: Final = 3
_ITEMS: Final[Memo[Items, Mapping[Item, int]]] = Memo()


class Cost(NamedTuple):
    """The cost of a cluster, the most important part first; `left` is the unused rest."""

    tier: int
    moves: bool
    siblings: int
    distance: int
    left: int
    name: str


class Room:
    """The free resources of the usable clusters, by sums and on their nodes.

    Invariants:

    - `clusters` has every cluster by name, `free` the usable ones, or those that `within` chose.
    - `free` has each usable cluster, a full one too: its HyperJobs end, or make way. It is what the
      cluster has less what `hold` and `subtract` have taken since, and may be negative. `sum` is
      the sum of `free` over the clusters, in which a negative amount is 0.
    - Where the nodes of a cluster are known, they have the pods of its view, without those that
      `after` and `leave` took away, and beside them those that are promised (`reserved_pods`) and
      those of `hold`. Elsewhere the sums alone count.
    - `occupied` and `domains` count the sub-jobs that stand, and those in `assigned`, the requests
      of `put` by name.
    - A copy shares no change with its original. No method changes a Cluster or a view.
    """

    def __init__(
        self, clusters: Iterable[Cluster], standing: Iterable[tuple[str, str]] = ()
    ) -> None:
        """`standing` are (group, cluster) of sub-jobs that stay where they are."""
        self.clusters: Mapping[str, Cluster] = {each.name: each for each in clusters}
        usable = [each for each in self.clusters.values() if each.usable]
        self.free: dict[str, Resources] = {each.name: each.free for each in usable}
        self.sum: dict[str, int] = _summed(self.free)
        self.occupied: dict[tuple[str, str], int] = {}
        self.domains: dict[str, int] = {}
        self.assigned: dict[str, str] = {}
        self._near: frozenset[tuple[str, ...]] | None = None
        self._grounds: Mapping[str, Ground] = {
            each.name: ground_of(each.name, each.view) for each in usable if each.view is not None
        }
        self._held: dict[str, Mapping[Item, int]] = {
            name: _items(self.clusters[name].reserved_pods) for name in self._grounds
        }
        self._gone: dict[str, frozenset[str]] = {}  # the vcjobs that `leave` has taken away
        # The ground of a cluster without these vcjobs: a function of `_grounds`, which copies share
        # until `after` replaces both.
        self._trials: dict[tuple[str, frozenset[str]], Ground] = {}
        self._stand(standing)

    def copy(self) -> "Room":
        """Return an independent copy."""
        made: Room = copy(self)
        made.free, made.sum = dict(self.free), dict(self.sum)
        made.occupied, made.domains = dict(self.occupied), dict(self.domains)
        made.assigned = dict(self.assigned)
        made._held, made._gone = dict(self._held), dict(self._gone)
        return made

    def beside(self, standing: Iterable[tuple[str, str]]) -> "Room":
        """Return a copy beside the sub-jobs of another HyperJob, of which none is assigned yet."""
        made: Room = self.copy()
        made.occupied, made.domains, made.assigned, made._near = {}, {}, {}, None
        made._stand(standing)
        return made

    def within(self, names: Collection[str]) -> "Room":
        """Return a copy in which the other clusters have no room."""
        made: Room = self.copy()
        made.free = {name: free for name, free in self.free.items() if name in names}
        made.sum = _summed(made.free)
        return made

    def after(self, pods: Vacating) -> "Room":
        """Return a copy whose nodes have lost these pods; the sums stay as they are."""
        made: Room = self.copy()
        made._grounds = {name: ground.vacated(pods) for name, ground in self._grounds.items()}
        made._trials = {}
        return made

    def emptied(self, pods: Vacating, free: Mapping[str, Resources]) -> "Room":
        """Return a copy without these pods and all that is promised, with these sums free."""
        made: Room = self.after(pods)
        made._held, made._gone = {}, {}
        made.free = {name: free.get(name, {}) for name in self.free}
        made.sum = _summed(made.free)
        return made

    def allows(self, floor: Resources) -> bool:
        """Return whether the clusters together have `floor` free: a quick check before others."""
        return fits(floor, self.sum)

    def may_hold(self, request: PlacementRequest, name: str) -> bool:
        """Return whether a cluster may have room for a request, by sums: a quick check."""
        if not request.allows(name) or not fits(request.demand, self.free[name]):
            return False
        ground = self._ground(name)
        held = self._held.get(name, {})
        return ground is None or overfull(ground, _items(request.pods), held) is None

    def nodes_hold(self, cluster: str, pods: Items) -> bool:
        """Return whether pods fit on the nodes beside those placed before, or may fit."""
        return self.unfit(cluster, pods) is None

    def unfit(self, cluster: str, pods: Items) -> Unfit | None:
        """Return which pods the nodes do not hold beside those placed before; None: they may."""
        ground = self._ground(cluster)
        if ground is None:
            return None
        return unfit(ground, _items(pods), self._held.get(cluster, {}))

    def nodes(self, cluster: str) -> Ground | None:
        """Return the nodes of a usable cluster with the pods on them; None if not known."""
        return self._grounds.get(cluster)

    def left_by(self, jobs: Collection[str]) -> Mapping[str, int]:
        """Return what the nodes of these vcjobs have of their accelerator once all have ended."""
        found: dict[str, int] = {}
        for ground in self._grounds.values() if jobs else ():
            found |= ground.left_by(jobs)
        return found

    def subtract(self, cluster: str, demand: Resources, sign: int = 1) -> None:
        """Subtract `sign` times a demand from the sums of a cluster; an unknown one is ignored."""
        if cluster not in self.free:
            return
        self.free[cluster] = free = dict(self.free[cluster])
        for name, amount in demand.items():
            before = free.get(name, 0)
            free[name] = after = before - sign * amount
            self.sum[name] = self.sum.get(name, 0) + max(0, after) - max(0, before)

    def hold(self, request: PlacementRequest, cluster: str, sign: int = 1) -> None:
        """Take the room of a sub-job without pods on a cluster, or return it with sign -1."""
        self.subtract(cluster, request.demand, sign)
        if cluster in self._grounds:
            held = Counter(self._held.get(cluster, {}))
            for item, number in _items(request.pods).items():
                held[item] += sign * number
            self._held[cluster] = {item: number for item, number in held.items() if number > 0}

    def put(self, request: PlacementRequest, cluster: str) -> None:
        """Assign a request to a cluster."""
        self.hold(request, cluster)
        self._occupy(request.group, cluster)
        self.assigned[request.name] = cluster

    def take(self, request: PlacementRequest) -> None:
        """Undo `put`."""
        cluster = self.assigned.pop(request.name)
        self.hold(request, cluster, -1)
        self._occupy(request.group, cluster, -1)

    def leave(self, cluster: str, job: str, demand: Resources, sign: int = 1) -> None:
        """Let the pods of a vcjob, by namespace/name, leave their cluster; with sign -1, return.

        `demand` is what they hold of the sums.
        """
        self.subtract(cluster, demand, -sign)
        gone = self._gone.get(cluster, frozenset())
        self._gone[cluster] = gone | {job} if sign > 0 else gone - {job}

    def ranked(self, request: PlacementRequest) -> Iterator[str]:
        """Yield the clusters with room for a request, best first."""
        for cost in sorted(self.costs(request).values()):
            if self.nodes_hold(cost.name, request.pods):
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
            if self.nodes_hold(least.name, request.pods):
                return least
            del costs[least.name]
        return None

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
        """Return the `whereabouts` of all usable clusters in use."""
        if self._near is None:
            used = (self.clusters[domain] for domain in self.domains if domain in self.free)
            self._near = frozenset(where for cluster in used for where in whereabouts(cluster))
        return self._near

    def _distance(self, name: str) -> int:
        """Return the distance to the clusters in use: 0 in one zone to 3 at another provider."""
        near = self.near
        if not near or name in self.domains:
            return 0
        return _FAR - sum(where in near for where in whereabouts(self.clusters[name]))

    def _stand(self, standing: Iterable[tuple[str, str]]) -> None:
        for group, cluster in standing:
            self._occupy(group, cluster)

    def _occupy(self, group: str, cluster: str, sign: int = 1) -> None:
        self.occupied[group, cluster] = self.occupied.get((group, cluster), 0) + sign
        before = self.domains.pop(cluster, 0)
        if before + sign:
            self.domains[cluster] = before + sign
        if not before or not before + sign:
            self._near = None

    def _ground(self, cluster: str) -> Ground | None:
        ground, gone = self._grounds.get(cluster), self._gone.get(cluster)
        if ground is None or not gone:
            return ground
        key = cluster, gone
        if key not in self._trials:
            self._trials[key] = ground.without(gone)
        return self._trials[key]


def whereabouts(cluster: Cluster) -> list[tuple[str, ...]]:
    """Return the paths (provider), (provider, region) and (provider, region, zone) of a cluster.

    An unknown part ends the list.
    """
    steps = (cluster.provider, cluster.region, cluster.zone)
    depth = next((number for number, step in enumerate(steps) if not step), len(steps))
    return [steps[: number + 1] for number in range(depth)]


def _items(pods: Items) -> Mapping[Item, int]:
    return _ITEMS.of(id(pods), pods, counted)


def _summed(free: Mapping[str, Resources]) -> dict[str, int]:
    """Return the sum of free resources over clusters; a negative amount counts as 0."""
    found: dict[str, int] = {}
    for each in free.values():
        for name, amount in each.items():
            found[name] = found.get(name, 0) + max(0, amount)
    return found


def after_ends(room: Room) -> Room:
    """Return the room after the end of all pods that are about to end, as nodes show them."""
    made = room.after(Vacating.ENDING)
    for name in room.free:
        cluster = room.clusters[name]
        if cluster.view is not None:
            for job, demand in cluster.ending.items():
                if job:
                    made.leave(name, job, demand)
                else:  # of other workloads: `after` has taken these pods from the nodes
                    made.subtract(name, demand, -1)
    return made


def without_doubts(room: Room) -> Room | None:
    """Return the room with all that summaries may count too much; None if there is no doubt."""
    doubts = {name: each.doubtful for name, each in room.clusters.items()}
    if not any(any(each.values()) for each in doubts.values()):
        return None
    made = room.copy()
    for name, doubtful in doubts.items():
        made.subtract(name, doubtful, -1)
    return made
