"""The placement request of one sub-job: its resources, its clusters and its pods.

Pods count by kind, and in bundles that one HyperNode must hold.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Final, TypeAlias

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, count, integer, mapping, string
from hyperjob_engine.model.members import ANY_NODE, NodeWants
from hyperjob_engine.model.wants import clash, parted_by
from hyperjob_engine.resources import Resources, accelerator_of, measure_of, total

Frozen: TypeAlias = tuple[tuple[str, int], ...]
"""A request as sorted pairs of resource and amount, which can be a key."""
HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods that the nodes of a cluster hold alike: one request, and one demand on a node.

    A request includes 1 of the resource `pods`.
    """

    request: Frozen
    wants: NodeWants = ANY_NODE
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once: a kind is the key of many counts."""
        object.__setattr__(self, "_hash", hash((self.request, self.wants)))

    def __hash__(self) -> int:
        return self._hash

    def conflicts(self, other: "Kind") -> frozenset[str]:
        """Return the topology keys by which a pod of each must be apart."""
        one, two = self.wants, other.wants
        found = frozenset({HOSTNAME}) if clash(one.ports, two.ports) else frozenset()
        if not one.apart and not two.apart:
            return found
        return found | parted_by((one.labels, one.apart), (two.labels, two.apart))

    @property
    def alone(self) -> bool:
        """Return whether no node may have two pods of the kind."""
        return HOSTNAME in self.conflicts(self)


@dataclass(frozen=True, slots=True)
class Tier:
    """The highest tier of a HyperNode that may hold pods together: by number, or by name."""

    number: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Items that one HyperNode of at most a tier must hold."""

    tier: Tier
    items: "Items" = ()


Item: TypeAlias = Kind | Bundle
"""A pod of a kind, or the pods of a bundle."""
Items: TypeAlias = tuple[tuple[Item, int], ...]


def kind_of(request: Resources, wants: NodeWants = ANY_NODE) -> Kind:
    """Return the kind of pods with a request; equal ones are one value."""
    return _kind(tuple(sorted(pair for pair in request.items() if pair[1] > 0)), wants)


@lru_cache(maxsize=4096)
def _kind(request: Frozen, wants: NodeWants) -> Kind:
    return Kind(request, wants)


def counted(items: Iterable[tuple[Item, int]]) -> Counter[Item]:
    """Return the number of each item."""
    found: Counter[Item] = Counter()
    for item, number in items:
        found[item] += number
    return found


def kinds_of(items: Iterable[tuple[Item, int]]) -> Counter[Kind]:
    """Return the numbers of the pods of all items by kind."""
    found: Counter[Kind] = Counter()
    for item, number in items:
        for kind, each in kinds_in(item).items():
            found[kind] += number * each
    return found


@lru_cache(maxsize=4096)
def kinds_in(item: Item) -> Counter[Kind]:
    """Return the numbers of the pods of one item by kind."""
    if isinstance(item, Kind):
        return Counter({item: 1})
    return kinds_of(item.items)


Precedence: TypeAlias = tuple[float, int, int, Frozen]


@lru_cache(maxsize=4096)
def precedence(item: Item) -> Precedence:
    """Return the key of the order in which pods take nodes: first what the fewest places hold.

    Bundles go before single pods, those of a low tier first, then large before small: where each
    size divides the larger ones, any choice of nodes leaves equal room for the rest. Of one size
    the pods with more demands on a node go first.
    """
    if isinstance(item, Bundle):
        highest = math.nextafter(math.inf, 0) if item.tier.name else item.tier.number
        sizes = (_accelerators(kind) * number for kind, number in kinds_in(item).items())
        return highest, -sum(sizes), 0, ()
    wants = item.wants
    demands = len(wants.selector) + sum(map(bool, (wants.terms, wants.apart, wants.ports)))
    request = tuple((name, -amount) for name, amount in item.request)
    return math.inf, -_accelerators(item), bool(wants.tolerations) - demands, request


def _accelerators(kind: Kind) -> int:
    request = dict(kind.request)
    return request.get(accelerator_of(request) or "", 0)


def request_of_all(items: Iterable[tuple[Item, int]]) -> dict[str, int]:
    """Return the sum of the requests of all pods."""
    pairs = kinds_of(items).items()
    return total({name: amount * number for name, amount in kind.request} for kind, number in pairs)


def in_partitions(kind: Kind, number: int, task: Object) -> Items:
    """Return the pods of a task, in bundles where its partitions want a HyperNode each."""
    policy = mapping(task.get("partitionPolicy"))
    tier, size = parse_tier(policy.get("networkTopology")), count(policy.get("partitionSize"))
    if tier is None or not size:
        return ((kind, number),) if number > 0 else ()
    parts, rest = divmod(number, size)
    bundles: Items = ((Bundle(tier, ((kind, size),)), parts), (kind, rest))
    return tuple(pair for pair in bundles if pair[1] > 0)


def in_one_bundle(items: Iterable[tuple[Item, int]], tier: Tier | None) -> Items:
    """Return the pods of a vcjob in one HyperNode of `tier`; None: each of them for itself."""
    found = tuple(counted(items).items())
    return found if tier is None or not found else ((Bundle(tier, found), 1),)


def parse_tier(topology: object) -> Tier | None:
    """Parse a `networkTopology`; None unless it is hard and names its highest tier."""
    raw = mapping(topology)
    mode = string(raw.get("mode")) or "hard"
    number, name = integer(raw.get("highestTierAllowed")), string(raw.get("highestTierName"))
    if mode != "hard" or (number is None and not name):
        return None
    return Tier(number or 0, name)


def tier_of(template: Object) -> Tier | None:
    """Return the tier within which a vcjob spec wants all of its pods."""
    return parse_tier(at(template, "networkTopology"))


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
    pods: Items = ()
    kind: tuple[object, ...] = field(init=False, repr=False, compare=False)
    """Equal for two requests that placement treats alike, whatever their names are."""
    measure: str = field(init=False, repr=False, compare=False)
    """The resource that the sub-job is measured by."""

    def __post_init__(self) -> None:
        """Exclude the clusters of `closed`, and compute what each round of a queue compares."""
        if self.closed is not None:
            object.__setattr__(self, "excluded", self.excluded | self.closed.clusters)
        where = self.preferred, self.required, self.last, self.excluded, self.closed
        kind: tuple[object, ...] = self.group, *where, tuple(sorted(self.demand.items())), self.pods
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
