"""The nodes of a member's HyperNodes, found in bounded work.

A member writes its HyperNodes itself. Where they would take too much work or room, or have a
pattern that cannot be read, none of them is known: placement counts the nodes without them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hyperjob_engine.members.facts import HyperNodeFact, NodeFact
from hyperjob_engine.members.patterns import Names, NotKnownError, Work
from hyperjob_engine.model.members import HyperNode, Labels

_MOST: Final = 1_000
"""HyperNodes of a member: placement compares each of them with each other."""
_MOST_NODES: Final = 250_000
"""The nodes of all HyperNodes together."""
_MOST_WORK: Final = 4_000_000


def resolved(
    hypernodes: Mapping[str, HyperNodeFact],
    nodes: Mapping[str, NodeFact],
    *,
    most: int = _MOST_WORK,
) -> tuple[HyperNode, ...]:
    """Return the HyperNodes by name, each with its known nodes; a higher tier includes lower ones.

    `most` is the work, in calls of functions. Raises NotKnownError with the reason.
    """
    if len(hypernodes) > _MOST:
        raise NotKnownError(f"it has {len(hypernodes)} HyperNodes, and {_MOST} are the most")
    work, room = Work(most), _MOST_NODES
    found: dict[str, HyperNode] = {}
    lookup = _Lookup(hypernodes, nodes, work)
    for each in sorted(hypernodes.values(), key=lambda each: (each.tier, each.key)):
        own = lookup.nodes_of(each, found)
        room -= len(own)
        if room < 0:
            raise NotKnownError(f"its HyperNodes have more than {_MOST_NODES} nodes together")
        found[each.key] = HyperNode(each.key, each.tier, own, each.tier_name)
    return tuple(found[name] for name in sorted(found))


class _Lookup:
    """Finds nodes and HyperNodes by what a HyperNode says of its members."""

    def __init__(
        self,
        hypernodes: Mapping[str, HyperNodeFact],
        nodes: Mapping[str, NodeFact],
        work: Work,
    ) -> None:
        self._hypernodes = hypernodes
        self._nodes = nodes
        self._work = work
        self._texts: dict[bool, Names] = {}
        self._found: dict[tuple[str, bool], set[str]] = {}  # by pattern, of nodes or HyperNodes
        self._by_label: dict[tuple[str, str], set[str]] = defaultdict(set)
        if any(each.node_labels for each in hypernodes.values()):
            for node in nodes.values():
                work.spend(5 * len(node.labels))
                for label in node.labels:
                    self._by_label[label].add(node.key)

    def nodes_of(self, hypernode: HyperNodeFact, lower: Mapping[str, HyperNode]) -> frozenset[str]:
        """Return the known nodes of a HyperNode; `lower` are those found before, by name."""
        self._work.spend(len(hypernode.nodes) + len(hypernode.hypernodes))
        found = set(hypernode.nodes & self._nodes.keys())
        found |= self._matching(hypernode.node_patterns, self._nodes)
        for wanted in hypernode.node_labels:
            found |= self._labelled(wanted)
        below = hypernode.hypernodes | self._matching(
            hypernode.hypernode_patterns, self._hypernodes
        )
        for name in below & lower.keys():
            if lower[name].tier < hypernode.tier:
                self._work.spend(len(lower[name].nodes))
                found |= lower[name].nodes
        return frozenset(found)

    def _matching(self, patterns: Iterable[str], names: Collection[str]) -> set[str]:
        found: set[str] = set()
        of_nodes = names is self._nodes
        for pattern in patterns:
            known = self._found.get((pattern, of_nodes))
            if known is None:
                text = self._texts.get(of_nodes)
                if text is None:
                    text = self._texts[of_nodes] = Names(names, self._work)
                known = self._found[pattern, of_nodes] = text.matching(pattern)
            self._work.spend(1 + len(known))
            found |= known
        return found

    def _labelled(self, wanted: Labels) -> set[str]:
        """Return the nodes that have all of these labels."""
        having = sorted((self._by_label.get(label, set()) for label in wanted), key=len)
        self._work.spend(len(wanted) * (10 + len(having[0])))
        return set.intersection(*having)
