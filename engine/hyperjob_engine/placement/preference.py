"""How far a cluster leaves unmet what pods only prefer: nearness of their nodes, and affinity.

Preferences decide between clusters that fit; they never keep pods from a cluster.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.wants import liking
from hyperjob_engine.placement.ground import Ground, Kind
from hyperjob_engine.placement.items import kind_of


class UnmetWishes(NamedTuple):
    """The lowest tier that holds all pods of a soft topology, and the missing affinity weight."""

    tier: int = 0
    weight: int = 0


def prefers(pods: Collection[PodGroup]) -> bool:
    """Return whether pods have any preference."""
    return any(group.near or group.wants.preferred for group in pods)


def unmet(ground: Ground | None, pods: Collection[PodGroup]) -> UnmetWishes:
    """Return what a cluster leaves unmet; of a cluster without a view nothing is known to be met.

    Each kind of pods is looked at alone, without the pods placed before.
    """
    near = (
        UnmetWishes(tier=_tier(ground, pods))
        if any(group.near for group in pods)
        else UnmetWishes()
    )
    missing = sum(_missing(ground, group) for group in pods if group.wants.preferred)
    return near._replace(weight=missing)


_NOWHERE = 1 << 20


def _tier(ground: Ground | None, pods: Collection[PodGroup]) -> int:
    """Return the lowest tier with a HyperNode that could hold all pods; of no use: a high tier."""
    if ground is None or not ground.view.hypernodes:
        return _NOWHERE
    wanted: dict[Kind, int] = {}
    for group in pods:
        kind = kind_of(group)
        wanted[kind] = wanted.get(kind, 0) + group.number
    for each in ground.network.domains:
        if all(ground.most_in(kind, each.number) >= number for kind, number in wanted.items()):
            return each.tier
    return _NOWHERE


def _missing(ground: Ground | None, group: PodGroup) -> int:
    """Return the weight that the best nodes leave unmet, summed over the pods."""
    most = sum(max(0, weight) for weight, _ in group.wants.preferred)
    if ground is None:
        return most * group.number
    likings: dict[int, int] = {}
    for node, number in zip(ground.nodes, ground.counts(kind_of(group)), strict=True):
        if number:
            weight = liking(node, group.wants)
            likings[weight] = likings.get(weight, 0) + number
    return most * group.number - _best(likings, group.number)


def _best(likings: Mapping[int, int], number: int) -> int:
    found, left = 0, number
    for weight in sorted(likings, reverse=True):
        taken = min(left, likings[weight])
        found += weight * taken
        left -= taken
    return found
