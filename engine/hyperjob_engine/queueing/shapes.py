"""Shapes of waiting HyperJobs: the same rules block all HyperJobs of one shape.

A round looks up thousands of shapes, by identity for speed: the registry returns one object for
equal shapes, and drops a shape after its last use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from hyperjob_engine.queueing.units import QueuedHyperJob, QueuedSubJob
from hyperjob_engine.resources import Resources, total

Kinds = tuple[tuple[object, ...], ...]
Standing = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class PlacementNeeds:
    """The needs of a waiting HyperJob on clusters; `floor` is the least that its gang demands.

    `alike`: all its waiting sub-jobs are of one kind.
    """

    needed: int
    max_domains: int | None
    standing: Standing
    kinds: Kinds
    floor: Resources
    alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Shape:
    """The needs of a waiting HyperJob on clusters, and the queues that must admit it."""

    needs: PlacementNeeds
    queues: tuple[str, ...]


class Shapes:
    """All shapes in use."""

    def __init__(self) -> None:
        self._needs: WeakValueDictionary[tuple[object, ...], PlacementNeeds] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[tuple[object, ...], Shape] = WeakValueDictionary()

    def of(
        self,
        unit: QueuedHyperJob,
        waiting: Sequence[QueuedSubJob],
        *,
        needed: int,
        promised: Mapping[str, str] | None = None,
    ) -> Shape:
        """Return the shape of a HyperJob, some of whose sub-jobs wait.

        `promised` are the clusters of granted sub-jobs that do not exist yet.
        """
        clusters = {**(promised or {}), **unit.clusters}
        names = {part.name for part in waiting}
        standing = tuple(
            sorted(
                (part.request.group, clusters[part.name])
                for part in unit.parts
                if part.name not in names and clusters.get(part.name)
            )
        )
        kinds = tuple(part.request.kind for part in waiting)
        key = needed, unit.max_domains, standing, kinds
        needs = self._needs.get(key)
        if needs is None:
            needs = self._needs[key] = PlacementNeeds(
                needed=needed,
                max_domains=unit.max_domains,
                standing=standing,
                kinds=kinds,
                floor=_floor(waiting, max(1, needed)),
                alike=len(set(kinds)) == 1,
            )
        queues = tuple(part.queue for part in waiting)
        shape = self._shapes.get((needs, queues))
        if shape is None:
            shape = self._shapes[needs, queues] = Shape(needs=needs, queues=queues)
        return shape


def _floor(waiting: Sequence[QueuedSubJob], number: int) -> Resources:
    """Return a lower bound of the demand of any `number` of the sub-jobs together."""
    demands = [part.request.demand for part in waiting]
    if number >= len(demands):
        return total(demands)
    names = {name for demand in demands for name in demand}
    return {name: sum(sorted(demand.get(name, 0) for demand in demands)[:number]) for name in names}
