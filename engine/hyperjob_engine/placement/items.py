"""Pods as placement counts them: by kind, and in blocks that one HyperNode must hold."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.request import Domain, Frozen, PodGroup
from hyperjob_engine.placement.ground import Kind, labelled


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods that one HyperNode of a tier of at most `tier`, or of this tier's name, must hold.

    `parts` are the blocks in it, with their numbers: their pods are not among `pods`.
    """

    tier: int
    tier_name: str
    pods: tuple[tuple[Kind, int], ...] = ()
    parts: tuple[tuple["Bundle", int], ...] = ()


Item: TypeAlias = Kind | Bundle
"""A pod of a kind, or the pods of a block."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """The nodes hold at most `most` of `wanted` pods of a kind, of those in one block if given."""

    kind: Kind
    wanted: int
    most: int
    block: Bundle | None = None


def items_of(groups: Iterable[PodGroup]) -> Counter[Item]:
    """Return the numbers of pods by kind, and of those with domains by block.

    Groups with the same outer domain, by tier and key, are in the same blocks: a block has `each`
    pods of each of these groups, of which all have the same number of blocks.
    """
    found: Counter[Item] = Counter()
    domains: dict[tuple[int, str], list[PodGroup]] = {}
    for group in groups:
        if group.number <= 0:
            continue  # a task of which no pod must start
        if group.domains:
            domains.setdefault((group.domains[0].tier, group.domains[0].key), []).append(group)
        else:
            found[kind_of(group)] += group.number
    for mates in domains.values():
        outer = mates[0].domains[0]
        if outer.each:
            found[_block(outer, mates)] += mates[0].number // outer.each
    return found


def kind_of(group: PodGroup) -> Kind:
    """Return the kind of the pods of a group."""
    return _kind(group.frozen, group.wants)


@lru_cache(maxsize=4096)
def _kind(request: Frozen, wants: NodeWants) -> Kind:
    return Kind(tuple((name, amount) for name, amount in request if amount > 0), wants)


def kinds_of(items: Mapping[Item, int]) -> Counter[Kind]:
    """Return the numbers of the pods of all items by kind."""
    found: Counter[Kind] = Counter()
    for item, number in items.items():
        for kind, each in kinds_in(item).items():
            found[kind] += number * each
    return found


@lru_cache(maxsize=4096)
def kinds_in(item: Item) -> Counter[Kind]:
    """Return the numbers of the pods of one item by kind."""
    if isinstance(item, Kind):
        return Counter({item: 1})
    return Counter(dict(item.pods)) + kinds_of(dict(item.parts))


def all_loose(items: Mapping[Item, int]) -> Counter[Item]:
    """Return the items without blocks, except those that want a HyperNode of a name."""
    found: Counter[Item] = Counter()
    for item, number in items.items():
        if isinstance(item, Kind) or item.tier_name or item.tier < 1:
            found[item] += number
        else:
            for kind, each in kinds_in(item).items():
                found[kind] += number * each
    return found


def all_labelled(items: Mapping[Item, int], keys: frozenset[str]) -> Counter[Item]:
    """Return the items with those labels of their pods alone that have one of these keys."""
    found: Counter[Item] = Counter()
    for item, number in items.items():
        told = labelled(item, keys) if isinstance(item, Kind) else _told(item, keys)
        found[told] += number
    return found


@lru_cache(maxsize=4096)
def _told(block: Bundle, keys: frozenset[str]) -> Bundle:
    pods: Counter[Kind] = Counter()
    for kind, number in block.pods:
        pods[labelled(kind, keys)] += number
    parts = tuple((_told(part, keys), number) for part, number in block.parts)
    return Bundle(block.tier, block.tier_name, tuple(pods.items()), parts)


def _block(outer: Domain, mates: Sequence[PodGroup]) -> Bundle:
    """Return the pods that one outer domain of a job has, as a block with its inner domains.

    `mates` are the groups with that outer domain. A domain has `each` pods of a group.
    """
    pods: Counter[Kind] = Counter()
    parts: Counter[Bundle] = Counter()
    for group in mates:
        each, kind = group.domains[0].each, kind_of(group)
        if len(group.domains) > 1 and group.domains[1].each:
            inner = group.domains[1]
            parts[Bundle(inner.tier, inner.tier_name, ((kind, inner.each),))] += each // inner.each
        else:
            pods[kind] += each
    return Bundle(outer.tier, outer.tier_name, tuple(pods.items()), tuple(parts.items()))
