"""What every queue uses, and what that leaves it: capability, guarantees of others, its share.

Counts only what it is told. Claims of heads of queues last for one round.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller.model.resources import Resources
from controller.queueing.queues import ROOT, Tree

OrderKey = tuple[tuple[int, float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A queue's capability stands in the way of a demand."""

    queue: str
    resource: str
    capability: int
    used: int
    missing: int
    ever: bool  # it would fit if the queue used nothing


class Account:
    """Usage by queue, each including its children's."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._used: dict[str, dict[str, int]] = {name: {} for name in tree.queues}
        self._claimed: dict[str, dict[str, int]] = {}
        self._shares: dict[str, float] = dict.fromkeys(tree.queues, 0.0)

    def used(self, queue: str) -> Resources:
        """Return what a queue and its children use."""
        return self._used.get(queue, {})

    def add(self, queue: str, demand: Resources, sign: int = 1) -> None:
        """Count a demand in a queue and all above it, or take it off."""
        for name in self.tree.path(queue):
            _add(self._used[name], demand, sign)
            self._shares[name] = self._share(name)

    def claim(self, queue: str, demand: Resources) -> None:
        """Keep room under the capabilities for a head of queue, for the rest of the round."""
        for name in self.tree.path(queue):
            _add(self._claimed.setdefault(name, {}), demand, 1)

    def forget_claims(self) -> None:
        """Begin a new round."""
        self._claimed.clear()

    def limit(self, queue: str, demand: Resources) -> Limit | None:
        """Return the first capability, from the leaf up, that a demand would exceed."""
        for name in reversed(self.tree.path(queue)):
            capability = self.tree.queues[name].capability
            if not capability:
                continue
            used, claimed = self._used[name], self._claimed.get(name, {})
            for resource, amount in demand.items():
                most = capability.get(resource)
                if most is None or amount <= 0:
                    continue
                taken = used.get(resource, 0) + claimed.get(resource, 0)
                if taken + amount > most:
                    return Limit(
                        queue=name,
                        resource=resource,
                        capability=most,
                        used=used.get(resource, 0),
                        missing=taken + amount - most,
                        ever=amount <= most,
                    )
        return None

    def kept_for_others(self, resources: Iterable[str]) -> Mapping[str, int]:
        """Return what guarantees keep free that their queues do not use now."""
        if not self.tree.guaranteed:
            return {}
        return {name: self._unused(ROOT, name) for name in resources}

    def key(self, queue: str) -> OrderKey:
        """Return what orders a queue among others, level by level: priority, share, name."""
        return tuple(
            (-self.tree.queues[name].priority, self._shares[name], name)
            for name in self.tree.path(queue)[1:]
        )

    def _unused(self, queue: str, resource: str) -> int:
        own = self.tree.queues[queue].guarantee.get(resource, 0)
        inner = sum(self._unused(child, resource) for child in self.tree.children[queue])
        return max(own - self._used[queue].get(resource, 0), inner, 0)

    def _share(self, queue: str) -> float:
        """Return the largest part that a queue uses of what it is entitled to, of any resource."""
        entitled = self.tree.entitled.get(queue, {})
        return max(
            (
                amount / entitled[name] if entitled.get(name, 0) > 0 else math.inf
                for name, amount in self._used[queue].items()
                if amount > 0
            ),
            default=0.0,
        )


def _add(sums: dict[str, int], demand: Resources, sign: int) -> None:
    for name, amount in demand.items():
        left = sums.get(name, 0) + sign * amount
        if left:
            sums[name] = left
        else:
            sums.pop(name, None)
