"""The check of placed pods against the nodes of a cluster without a view, by its resource models.

A cluster without resource models has no such check: only its free resources count.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hyperjob_engine.model.nodes import Nodes, PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.resources import amount_text


class Crowding(NamedTuple):
    """The nodes of a cluster hold at most `most` pods of this size, and `wanted` are needed."""

    resource: str
    amount: int
    wanted: int
    most: int

    @property
    def text(self) -> str:
        """Return that nodes have no room, although the sum over all of them has."""
        size = amount_text(self.resource, self.amount)
        if not self.most:
            return f"has no node with {size} left, by its resource models"
        return (
            f"has nodes for {self.most} pods with {size} each, by its resource models,"
            f" and {self.wanted} are needed"
        )


class Grades:
    """The pods placed on each cluster; `add` changes them."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        self._nodes = {cluster.name: cluster.nodes for cluster in clusters if cluster.nodes}
        self._resources = {name: nodes.resources for name, nodes in self._nodes.items()}
        self._put: dict[tuple[str, str], Mapping[int, int]] = {}
        self._most: dict[tuple[str, str, int], int] = {}

    def __bool__(self) -> bool:
        """Return whether the nodes of any cluster are known."""
        return bool(self._nodes)

    def copy(self) -> "Grades":
        """Return an independent copy."""
        made = Grades(())
        made._nodes, made._resources, made._most = self._nodes, self._resources, self._most
        made._put = dict(self._put)
        return made

    def crowding(self, cluster: str, pods: Iterable[PodGroup]) -> Crowding | None:
        """Return why pods do not fit on the nodes beside those placed before; None if they may.

        For each amount of a resource, the pods that need at least so much must not be more than
        the nodes hold of pods of this amount. Amounts above the new pods' largest were checked when
        their pods were added: here they only count.
        """
        nodes = self._nodes.get(cluster)
        if nodes is None:
            return None
        for resource in sorted(self._resources[cluster]):
            wanted = _by_amount(pods, resource)
            if not wanted:
                continue
            largest = max(wanted)
            for amount, number in self._put.get((cluster, resource), {}).items():
                wanted[amount] = wanted.get(amount, 0) + number
            total = 0
            for amount in sorted(wanted, reverse=True):
                total += wanted[amount]
                if amount > largest:
                    continue
                most = self._bound(nodes, cluster, resource, amount)
                if total > most:
                    return Crowding(resource, amount, total, most)
        return None

    def add(self, cluster: str, pods: Iterable[PodGroup], sign: int = 1) -> None:
        """Add pods to a cluster, or with sign -1 remove them."""
        for resource in self._resources.get(cluster, ()):
            put = dict(self._put.get((cluster, resource), {}))
            for amount, number in _by_amount(pods, resource).items():
                put[amount] = put.get(amount, 0) + sign * number
            self._put[cluster, resource] = {a: n for a, n in put.items() if n > 0}

    def _bound(self, nodes: Nodes, cluster: str, resource: str, amount: int) -> int:
        key = cluster, resource, amount
        if key not in self._most:
            self._most[key] = nodes.most(resource, amount)
        return self._most[key]


def _by_amount(pods: Iterable[PodGroup], resource: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for group in pods:
        amount = group.request.get(resource, 0)
        if amount > 0:
            found[amount] = found.get(amount, 0) + group.number
    return found
