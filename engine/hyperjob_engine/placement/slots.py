"""The check of placed pods against the nodes of their cluster.

A cluster with a view has the check, by its nodes and the pods on them. On other clusters pods may
always fit: only their sums count.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.ground import Ground, Vacating, ground_of
from hyperjob_engine.placement.items import Item, Unfit, items_of
from hyperjob_engine.placement.nodeshortage import label_hint, mismatch, node_shortage
from hyperjob_engine.placement.packing import overfull, unfit

_ITEMS: Final[Memo[Collection[PodGroup], Mapping[Item, int]]] = Memo()


class Slots:
    """The pods placed on each cluster; `add` changes them."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        self._grounds = {
            each.name: ground_of(each.name, each.view) for each in clusters if each.view is not None
        }
        self._held: dict[str, Mapping[Item, int]] = {}  # the pods that `add` has placed
        self._gone: dict[str, frozenset[str]] = {}  # the vcjobs that `leave` has taken away
        # The ground of a cluster without these vcjobs. Copies share it, since it is a function of
        # `_grounds`, which they share too.
        self._trials: dict[tuple[str, frozenset[str]], Ground] = {}

    def __bool__(self) -> bool:
        """Return whether the nodes of any cluster are known."""
        return bool(self._grounds)

    def copy(self) -> "Slots":
        """Return an independent copy."""
        made = Slots(())
        made._grounds, made._trials = self._grounds, self._trials
        made._held, made._gone = dict(self._held), dict(self._gone)
        return made

    def vacate(self, pods: Vacating) -> None:
        """Let running pods leave their nodes."""
        self._grounds = {name: ground.vacated(pods) for name, ground in self._grounds.items()}
        self._trials = {}

    def leave(self, cluster: str, job: str, sign: int = 1) -> None:
        """Let the pods of a vcjob, by namespace/name, leave their nodes; with sign -1, return."""
        gone = self._gone.get(cluster, frozenset())
        self._gone[cluster] = gone | {job} if sign > 0 else gone - {job}

    def crowding(self, cluster: str, pods: Collection[PodGroup]) -> str:
        """Return why pods do not fit on the nodes beside those placed before; empty if they may."""
        ground = self._ground(cluster)
        if ground is None:
            return ""
        found = self._unfit(ground, cluster, _ITEMS.of(id(pods), pods, items_of))
        return "" if found is None else node_shortage(ground, found)

    def mismatch(self, cluster: str, pods: Collection[PodGroup]) -> str:
        """Return why the nodes keep pods away by labels or taints; empty if they may not."""
        ground = self._grounds.get(cluster)
        return "" if ground is None else mismatch(ground, pods)

    def label_hint(self, pods: Collection[PodGroup]) -> str:
        """Return what may be meant by a label that no node of any cluster has."""
        return label_hint(self._grounds.values(), pods)

    def may_hold(self, cluster: str, pods: Collection[PodGroup]) -> bool:
        """Return whether the nodes may hold pods, by the sums of what each kind finds there."""
        ground = self._ground(cluster)
        if ground is None:
            return True
        wanted = _ITEMS.of(id(pods), pods, items_of)
        return overfull(ground, wanted, self._held.get(cluster, {})) is None

    def holds(self, cluster: str, pods: Collection[PodGroup]) -> bool:
        """Return whether pods fit on the nodes beside those placed before, or may fit."""
        ground = self._ground(cluster)
        if ground is None:
            return True
        return self._unfit(ground, cluster, _ITEMS.of(id(pods), pods, items_of)) is None

    def most(
        self, cluster: str, pods: Collection[PodGroup], limit: int, *, exact: bool = True
    ) -> int:
        """Return how often the same pods fit beside each other, at most `limit` times.

        If not `exact`, it is an upper bound, by sums.
        """
        ground = self._ground(cluster)
        if ground is None or not limit:
            return limit
        once, held = _ITEMS.of(id(pods), pods, items_of), self._held.get(cluster, {})
        check = unfit if exact else overfull

        def crowded(times: int) -> bool:
            wanted = {item: number * times for item, number in once.items()}
            return check(ground, wanted, held) is not None

        if not crowded(limit):
            return limit
        return bisect_left(range(1, limit), True, key=crowded)

    def add(self, cluster: str, pods: Iterable[PodGroup], sign: int = 1) -> None:
        """Add pods to a cluster, or with sign -1 remove them."""
        if cluster not in self._grounds:
            return
        held = Counter(self._held.get(cluster, {}))
        for item, number in items_of(pods).items():
            held[item] += sign * number
        self._held[cluster] = {item: number for item, number in held.items() if number > 0}

    def _unfit(self, ground: Ground, cluster: str, wanted: Mapping[Item, int]) -> Unfit | None:
        return unfit(ground, wanted, self._held.get(cluster, {}))

    def _ground(self, cluster: str) -> Ground | None:
        ground, gone = self._grounds.get(cluster), self._gone.get(cluster)
        if ground is None or not gone:
            return ground
        key = cluster, gone
        if key not in self._trials:
            self._trials[key] = ground.without(gone)
        return self._trials[key]
