"""Sums of pods by kind."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.request import Domain, Frozen, PodGroup

PodKind: TypeAlias = tuple[Frozen, NodeWants, tuple[Domain, ...]]


def count_pods(sums: Counter[PodKind], pods: Iterable[PodGroup], sign: int) -> None:
    """Add pods to the numbers of each kind, or subtract them with sign -1."""
    for group in pods:
        kind = group.frozen, group.wants, group.domains
        sums[kind] += sign * group.number
        if not sums[kind]:
            del sums[kind]
