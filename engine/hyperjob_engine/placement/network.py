"""The HyperNodes of a cluster, and the scores by which Volcano's topology plugin prefers nodes.

The scores are those of `network-topology-aware` with its default weights. They are equal for all
nodes with the same lowest HyperNode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from hyperjob_engine.model.members import HyperNode, MemberView

WEIGHED: Final = ("cpu", "memory")  # the resources that the plugin weighs
_FADING: Final = 0.8  # of the weight of a tier against the tier below it
_FULL: Final = 100.0

Sums: TypeAlias = tuple[int, ...]
"""Amounts of the weighed resources."""


@dataclass(frozen=True, slots=True)
class NetworkDomain:
    """A HyperNode with the positions of its nodes, and what these have of the weighed resources."""

    number: int
    tier: int
    tier_name: str
    positions: frozenset[int]
    whole: Sums
    used: Sums


class Network:
    """The HyperNodes of a view, the lowest tiers first.

    The last is the whole cluster, which Volcano counts as a HyperNode above all others.
    """

    def __init__(self, view: MemberView) -> None:
        self._nodes = view.nodes
        self._hypernodes = view.hypernodes

    @cached_property
    def domains(self) -> Sequence[NetworkDomain]:
        """Return all HyperNodes, the lowest tiers first."""
        positions = {node.name: i for i, node in enumerate(self._nodes)}
        tiers = [each.tier for each in self._hypernodes]
        top = HyperNode("", max(tiers, default=0) + 1, frozenset(positions))
        known = (*sorted(self._hypernodes, key=lambda each: each.tier), top)
        return [
            self._domain(number, each, [positions[n] for n in each.nodes if n in positions])
            for number, each in enumerate(known)
        ]

    @cached_property
    def parents(self) -> Sequence[int | None]:
        """Return the number of the HyperNode above each HyperNode; None above the whole cluster."""
        domains = self.domains
        return [
            next(
                (
                    above.number
                    for above in domains[each.number + 1 :]
                    if above.tier > each.tier and each.positions <= above.positions
                ),
                None if each is domains[-1] else len(domains) - 1,
            )
            for each in domains
        ]

    @cached_property
    def lowest(self) -> Sequence[int]:
        """Return the number of the lowest HyperNode of each node."""
        found = [len(self.domains) - 1] * len(self._nodes)
        for each in reversed(self.domains):
            for position in each.positions:
                found[position] = each.number
        return found

    @cached_property
    def paths(self) -> Sequence[Sequence[int]]:
        """Return each HyperNode with all above it, by number; the last is the whole cluster."""
        found: list[tuple[int, ...]] = []
        for number, above in reversed(tuple(enumerate(self.parents))):
            # Those above a HyperNode have higher numbers: they are found before it.
            found.append((number, *(() if above is None else found[len(self.parents) - 1 - above])))
        return found[::-1]

    @cached_property
    def missing(self) -> Sequence[float]:
        """Return the part of the tiers in which nodes of each lowest HyperNode have none."""
        tiers = [{self.domains[each].tier for each in path} for path in self.paths]
        weights = self._weights.items()
        return [_FULL * sum(w for tier, w in weights if tier not in mine) for mine in tiers]

    def leaf(self, number: int) -> int | None:
        """Return the HyperNode if it is of the lowest tier: to Volcano, a node is in these."""
        return number if self.domains[number].tier == self.domains[0].tier else None

    def sorted_positions(self, number: int) -> Sequence[int]:
        """Return the positions of the nodes of a HyperNode in order."""
        return sorted(self.domains[number].positions)

    def joined(self, one: int | None, other: int) -> int:
        """Return the lowest HyperNode around two HyperNodes, by number; of one alone, itself."""
        if one is None or one == other:
            return other
        known = self._joined.get((one, other))
        if known is None:
            around = self.paths[other]
            known = next(each for each in self.paths[one] if each in around)
            self._joined[one, other] = known
        return known

    def nearness(self, home: int, leaf: int | None) -> float:
        """Return the score of nodes of a HyperNode for a job whose pods are around `home`."""
        if leaf is None:
            return 0.0
        lowest, highest = self.domains[0].tier, self.domains[-1].tier
        around = self.domains[self.joined(home, leaf)].tier
        return _FULL * (highest - around) / (highest - lowest)

    def packed(self, number: int, used: Sums, request: Sums) -> float:
        """Return how full a HyperNode is with more pods, from 0 to 1; 0 if they are too many."""
        shares = []
        for whole, taken, wanted in zip(self.domains[number].whole, used, request, strict=True):
            if taken + wanted > whole:
                return 0.0
            shares.append((taken + wanted) / whole if whole else 0.0)
        return sum(shares) / len(shares)

    def part(self, number: int, used: Sums, request: Sums) -> float:
        """Return the part of a HyperNode in the score of its nodes for a pod.

        It counts for pods of jobs without a topology. The part of the whole cluster, which is equal
        for all nodes, is left out.
        """
        if number == len(self.domains) - 1:
            return 0.0
        weight = self._weights[self.domains[number].tier]
        return _FULL * weight * self.packed(number, used, request)

    @cached_property
    def _weights(self) -> Mapping[int, float]:
        """Return the share of each tier in the score, the whole cluster left out."""
        tiers = range(self.domains[0].tier, self.domains[-1].tier + 1)
        weights = {tier: _FADING ** (tier - 1) for tier in tiers}
        return {tier: weights[tier] / sum(weights.values()) for tier in tiers[:-1]}

    @cached_property
    def _joined(self) -> dict[tuple[int, int], int]:
        return {}

    def _domain(self, number: int, hypernode: HyperNode, positions: Sequence[int]) -> NetworkDomain:
        nodes = [self._nodes[i] for i in positions]
        whole = [sum(node.allocatable.get(name, 0) for node in nodes) for name in WEIGHED]
        free = [sum(node.free.get(name, 0) for node in nodes) for name in WEIGHED]
        return NetworkDomain(
            number=number,
            tier=hypernode.tier,
            tier_name=hypernode.tier_name,
            positions=frozenset(positions),
            whole=tuple(whole),
            used=tuple(all_ - left for all_, left in zip(whole, free, strict=True)),
        )
