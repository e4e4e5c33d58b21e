"""Sums of reservations by cluster."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias, TypeVar

from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.nodes import Domain, Frozen, PodGroup
from hyperjob_engine.placement.capacity import Reservation
from hyperjob_engine.resources import Resources, accumulate

PodKind: TypeAlias = tuple[Frozen, NodeWants, tuple[Domain, ...]]
T = TypeVar("T")


def on(sums: Mapping[str, T], clusters: Collection[str] | None) -> Mapping[str, T]:
    """Return the sums of some clusters; None: of all."""
    if clusters is None:
        return sums
    return {name: sums[name] for name in clusters if name in sums}


def without(sums: Mapping[str, Resources], ended: Iterable[Reservation]) -> dict[str, Resources]:
    """Return the sums without some reservations, and without the clusters that have none left."""
    found = {cluster: amounts for cluster, amounts in sums.items() if amounts}
    for entry in ended:
        if entry.cluster not in found:
            continue
        left = dict(found[entry.cluster])
        accumulate(left, entry.demand, -1)
        found[entry.cluster] = left
    return {cluster: amounts for cluster, amounts in found.items() if amounts}


def count_pods(sums: Counter[PodKind], pods: Iterable[PodGroup], sign: int) -> None:
    """Add pods to the numbers of each kind, or subtract them with sign -1."""
    for group in pods:
        kind = group.frozen, group.wants, group.domains
        sums[kind] += sign * group.number
        if not sums[kind]:
            del sums[kind]
