"""The pods of a sub-job: groups of equal ones, and the HyperNodes that must hold them."""

from dataclasses import dataclass
from typing import TypeAlias

from hyperjob_engine.model.members import ANY_NODE, NodeWants
from hyperjob_engine.resources import Resources

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
