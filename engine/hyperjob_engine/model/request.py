"""The placement request of one sub-job."""

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Final

from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.resources import Resources, measure_of


@dataclass(frozen=True, slots=True)
class ClosedQueue:
    """A Queue, and the clusters in which it is not Open: Volcano starts no sub-job of it there."""

    name: str
    clusters: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """One sub-job to place: its resources, its preferred clusters, its excluded clusters.

    `demand` is what the pods need that start together, `everything` what all of its pods need;
    empty: the same. `last` is the cluster of its run before: images and data may be there still.
    `excluded` has the clusters of `closed` too.
    """

    name: str
    group: str
    demand: Resources
    everything: Resources = field(default_factory=dict)
    preferred: tuple[str, ...] = ()
    required: bool = False
    last: str = ""
    excluded: frozenset[str] = frozenset()
    closed: ClosedQueue | None = None
    pods: tuple[PodGroup, ...] = ()
    kind: tuple[object, ...] = field(init=False, repr=False, compare=False)
    """Equal for two requests that placement treats alike, whatever their names are."""
    measure: str = field(init=False, repr=False, compare=False)
    """The resource that the sub-job is measured by."""

    def __post_init__(self) -> None:
        """Exclude the clusters of `closed`, and compute what each round of a queue compares."""
        if self.closed is not None:
            object.__setattr__(self, "excluded", self.excluded | self.closed.clusters)
        pods = tuple(
            (group.frozen, group.number, group.wants, group.domains) for group in self.pods
        )
        where = self.preferred, self.required, self.last, self.excluded, self.closed
        kind: tuple[object, ...] = self.group, *where, tuple(sorted(self.demand.items())), pods
        if self.everything:
            kind += (tuple(sorted(self.everything.items())),)
        object.__setattr__(self, "kind", _shared(kind))
        object.__setattr__(self, "measure", measure_of(self.demand))

    def named(self, name: str) -> "PlacementRequest":
        """Return the same request for another sub-job, without `__post_init__`: it costs more."""
        made = object.__new__(PlacementRequest)
        for each in _FIELDS:
            object.__setattr__(made, each, getattr(self, each))
        object.__setattr__(made, "name", name)
        return made

    def tier(self, cluster: str) -> int:
        """Return the rank of a cluster in `clusterNames`, from 0; unlisted clusters rank last."""
        return self.preferred.index(cluster) if cluster in self.preferred else len(self.preferred)

    def allows(self, cluster: str) -> bool:
        """Return whether the sub-job may be on a cluster at all."""
        return cluster not in self.excluded and (not self.required or cluster in self.preferred)


_FIELDS: Final = tuple(each.name for each in fields(PlacementRequest))


@lru_cache(maxsize=4096)
def _shared(kind: tuple[object, ...]) -> tuple[object, ...]:
    """Return one shared copy of equal kinds, to save memory with tens of thousands of requests."""
    return kind
