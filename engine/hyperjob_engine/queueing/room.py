"""The free resources of the clusters during one round, without those kept for a head of line.

While others make way for a head, everything is kept for it that it could use on any cluster: no
HyperJob that starts meanwhile can then delay it. For a head that has waited long no more is kept
than its gang needs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TypeAlias

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.placement.search import assign
from hyperjob_engine.placement.slots import Slots
from hyperjob_engine.resources import (
    Resources,
    fits,
    measure_of,
    scale,
    subtract,
    total,
)

Standing: TypeAlias = Sequence[tuple[str, str]]
"""The sub-jobs that stay where they are, as (group, cluster)."""


class Space:
    """The usable clusters with their free resources, in nano-units by cluster and resource.

    `free` are those of now, `eventual` those after the end of all HyperJobs.
    """

    def __init__(self, clusters: Iterable[Cluster], eventual: Mapping[str, Resources]) -> None:
        self.clusters = tuple(clusters)
        self.free: dict[str, Resources] = {
            cluster.name: cluster.free for cluster in self.clusters if cluster.usable
        }
        self.slots = FreeRoom.of(self.clusters, ()).slots
        self._eventual = eventual
        self.most: Resources = total(eventual.values())
        self.sum: dict[str, int] = {}  # the free resources of all clusters together
        for free in self.free.values():
            for name, amount in free.items():
                self.sum[name] = self.sum.get(name, 0) + max(0, amount)

    def __repr__(self) -> str:
        return repr({"free": self.free, "eventual": self._eventual})

    def copy(self) -> "Space":
        """Return an independent copy."""
        made = copy(self)
        made.free, made.sum, made.slots = dict(self.free), dict(self.sum), self.slots.copy()
        return made

    def allows(self, floor: Resources) -> bool:
        """Return whether the clusters together have `floor` free: a quick check before `assign`."""
        return all(amount <= self.sum.get(name, 0) for name, amount in floor.items())

    def assign(
        self,
        requests: Sequence[PlacementRequest],
        standing: Standing,
        max_domains: int | None,
        *,
        least: int = 0,
    ) -> Mapping[str, str]:
        """Return clusters for as many requests as have room.

        The result may be empty if fewer than `least` have room.
        """
        room = FreeRoom.of(self.clusters, standing, free=self.free, slots=self.slots)
        return assign(requests, room, max_domains=max_domains, least=least).assigned

    def holds(
        self,
        requests: Sequence[PlacementRequest],
        standing: Standing,
        max_domains: int | None,
        *,
        least: int,
        alike: bool,
    ) -> bool:
        """Return whether `least` of the requests have room; `alike`: all are of one kind.

        The answer equals that of `assign`. Requests of one kind are only counted: their order makes
        no difference to a cluster. `most` begins as an upper bound by sums, and the clusters are
        counted exactly from the best on, until enough have room or the bounds are too low.
        """
        if not alike:
            return len(self.assign(requests, standing, max_domains, least=least)) >= least
        if len(requests) < least:
            return False
        request, number = requests[0], len(requests)
        used = {cluster for _, cluster in standing}
        further = None if max_domains is None else max(0, max_domains - len(used))
        most = {
            name: self.slots.most(name, request.pods, by_sum, exact=False)
            for name, free in self.free.items()
            if request.allows(name)
            and (by_sum := min(number, _holds(free, request.demand, default=number)))
        }
        held: dict[str, int] = {}
        for name in sorted(most, key=lambda name: (name not in used, -most[name])):
            if _together(most, used, further) < least or _together(held, used, further) >= least:
                break
            held[name] = most[name] = self.slots.most(name, request.pods, most[name])
        return _together(held, used, further) >= least

    def could(
        self, requests: Sequence[PlacementRequest], standing: Standing, max_domains: int | None
    ) -> int:
        """Return how many requests have room after the end of all HyperJobs."""
        slots = Slots(self.clusters)
        slots.vacate(Vacating.OF_JOBS)
        room = FreeRoom.of(self.clusters, standing, free=self._eventual_free(), slots=slots)
        return len(assign(requests, room, max_domains=max_domains).assigned)

    def _eventual_free(self) -> dict[str, Resources]:
        return {name: self._eventual.get(name, {}) for name in self.free}

    def emptied(
        self, ended: Iterable[tuple[str, Resources]], *, leaving: Vacating = Vacating.OF_JOBS
    ) -> "Space":
        """Return a copy with the resources of ended sub-jobs free, and nodes without such pods.

        By default the nodes lose the pods of all sub-jobs, whatever `ended` is. The check of nodes
        stays where the pods on them are known. An ended sub-job on an unknown cluster has no
        effect.
        """
        made = self.copy()
        made.slots.vacate(leaving)
        for cluster, demand in ended:
            made.take(cluster, demand, -1)
        return made

    def ended(self) -> "Space":
        """Return a copy after the end of all pods that are about to end, as nodes show them."""
        made = self.emptied(
            (
                (each.name, total(each.ending.values()))
                for each in self.clusters
                if each.view is not None
            ),
            leaving=Vacating.ENDING,
        )
        for cluster in self.clusters:
            for job in cluster.ending:
                made.slots.leave(cluster.name, job)
        return made

    def put(self, request: PlacementRequest, cluster: str) -> None:
        """Subtract the demand of a sub-job from a cluster."""
        self.take(cluster, request.demand)
        self.slots.add(cluster, request.pods)

    def leave(self, request: PlacementRequest, cluster: str, job: str, sign: int = 1) -> None:
        """Let a running sub-job leave its cluster, with the pods of its vcjob; or return to it."""
        self.take(cluster, request.demand, -sign)
        self.slots.leave(cluster, job, sign)

    def take(self, cluster: str, demand: Resources, sign: int = 1) -> None:
        """Subtract `sign` times a demand from a cluster; free amounts may become negative."""
        if cluster in self.free:
            self.free[cluster] = free = dict(self.free[cluster])
            for name, amount in demand.items():
                before = free.get(name, 0)
                free[name] = after = before - sign * amount
                self.sum[name] = self.sum.get(name, 0) + max(0, after) - max(0, before)

    def wants(
        self, requests: Sequence[PlacementRequest], *, most: int, max_domains: int | None
    ) -> dict[str, Resources]:
        """Return the resources that a head could use, on every cluster that can ever take it.

        `most` is the number of sub-jobs that the gang needs. Each cluster counts as if it took as
        many of each kind as it can hold when empty: a head may use any of the clusters.
        """
        counts = Counter(request.kind for request in requests)
        kinds = list({request.kind: request for request in requests}.values())
        everything = total(request.demand for request in requests)
        found: dict[str, Resources] = {}
        for name in self.free:
            eventual = self._eventual.get(name, {})
            numbers = [
                min(counts[kind.kind], most, _holds(eventual, kind.demand))
                if kind.allows(name)
                else 0
                for kind in kinds
            ]
            if max_domains == 1 and not (
                fits(everything, eventual) if most >= len(requests) else sum(numbers) >= most
            ):
                continue
            used = total(map(scale, (kind.demand for kind in kinds), numbers))
            if any(used.values()):
                found[name] = used
        return found

    def keep(
        self, wants: Mapping[str, Resources], *, most: Resources | None = None
    ) -> dict[str, Resources]:
        """Take these resources, as far as they are free, for the rest of the round.

        At most `most` of all clusters together, from those first that have the largest part of what
        is wanted of them: there it is complete first. Return what was taken of each cluster.
        """
        taken: dict[str, Resources] = {}
        left = dict(most) if most is not None else None
        free = {
            name: {
                each: max(0, min(amount, self.free[name].get(each, 0)))
                for each, amount in wanted.items()
            }
            for name, wanted in wants.items()
        }
        for name in sorted(free, key=lambda n: (-free[n].get(measure_of(wants[n]), 0), n)):
            found = free[name]
            if left is not None:
                found = {each: min(amount, left.get(each, 0)) for each, amount in found.items()}
                left = subtract(left, found)
            if any(found.values()):
                self.take(name, found)
                taken[name] = found
        return taken


def _together(held: Mapping[str, int], used: Collection[str], further: int | None) -> int:
    """Return what clusters in use hold together with at most so many further ones; None: all."""
    others = sorted((number for name, number in held.items() if name not in used), reverse=True)
    return sum(held.get(name, 0) for name in used) + sum(others[:further])


def _holds(free: Resources, demand: Resources, *, default: int = 1) -> int:
    """Return how often a demand fits into free resources; `default` times if it is for nothing."""
    numbers = (free.get(name, 0) // amount for name, amount in demand.items() if amount > 0)
    return max(0, min(numbers, default=default))
