"""The placement request of one sub-job: its resources, its clusters, its pods and their domains."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, count, integer, mapping, string
from hyperjob_engine.model.members import ANY_NODE, NodeWants
from hyperjob_engine.resources import Resources, measure_of

Frozen: TypeAlias = tuple[tuple[str, int], ...]
"""A request as sorted pairs of resource and amount, which can be a key."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Pods that must be inside one HyperNode of a tier of at most `tier`, or of this tier's name.

    `each` is how many of a group's pods one domain has. The groups that share domains have an equal
    `key`.
    """

    tier: int
    tier_name: str
    each: int
    key: str


@dataclass(frozen=True, slots=True)
class PodGroup:
    """`number` pods with equal requests; a request includes 1 of the resource `pods`.

    `domains` are from outside inwards: that of the whole job, that of a partition.
    """

    request: Resources
    number: int
    wants: NodeWants = ANY_NODE
    domains: tuple[Domain, ...] = ()

    @property
    def frozen(self) -> Frozen:
        """Return the request as a key."""
        return tuple(sorted(self.request.items()))


@dataclass(frozen=True, slots=True)
class Tier:
    """The highest tier of a HyperNode that may hold pods together: by number, or by name."""

    number: int
    name: str = ""


def parse_tier(topology: object) -> Tier | None:
    """Parse a `networkTopology`; None unless it is hard and names its highest tier."""
    raw = mapping(topology)
    mode = string(raw.get("mode")) or "hard"
    number, name = integer(raw.get("highestTierAllowed")), string(raw.get("highestTierName"))
    if mode != "hard" or (number is None and not name):
        return None
    return Tier(number or 0, name)


def partitioned(group: PodGroup, task: Object) -> PodGroup:
    """Return the pods of a task with the domains of its partitions."""
    policy = mapping(task.get("partitionPolicy"))
    tier, size = parse_tier(policy.get("networkTopology")), count(policy.get("partitionSize"))
    if tier is None or not size:
        return group
    key = _key(tier, (group.frozen, group.wants, size))
    return replace(group, domains=(Domain(tier.number, tier.name, size, key),))


def in_one_domain(groups: Sequence[PodGroup], tier: Tier | None) -> tuple[PodGroup, ...]:
    """Return the pods of a vcjob, all in one domain of `tier`; None: without such a domain.

    The new domain is the outermost: domains of partitions stay inside it. Its key is equal for two
    vcjobs with the same pods, which placement then tries once.
    """
    if tier is None:
        return tuple(groups)
    mates = ((each.frozen, each.wants, each.domains, each.number) for each in groups)
    key = _key(tier, tuple(mates))
    return tuple(
        replace(each, domains=(Domain(tier.number, tier.name, each.number, key), *each.domains))
        for each in groups
    )


def tier_of(template: Object) -> Tier | None:
    """Return the tier within which a vcjob spec wants all of its pods."""
    return parse_tier(at(template, "networkTopology"))


def _key(tier: Tier, pods: tuple[object, ...]) -> str:
    """Return a short text, equal for domains that want the same pods."""
    return blake2b(repr((tier, pods)).encode(), digest_size=8).hexdigest()


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
