"""Pods as placement packs them: by kind, and in blocks that one HyperNode must hold."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.nodes import Domain, Frozen, PodGroup
from hyperjob_engine.placement.ground import Kind


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods that one HyperNode of a tier of at most `tier` must hold, with the blocks in it."""

    tier: int
    tier_name: str
    kinds: tuple[tuple[Kind, int], ...] = ()
    parts: tuple[tuple["Bundle", int], ...] = ()


Item: TypeAlias = Kind | Bundle


@dataclass(frozen=True, slots=True)
class Unfit:
    """The nodes hold at most `most` of `wanted` pods of a kind, of those in one block if given."""

    kind: Kind
    wanted: int
    most: int
    block: Bundle | None = None


def items_of(groups: Iterable[PodGroup]) -> Counter[Item]:
    """Return pods by kind, and those with domains by block."""
    found: Counter[Item] = Counter()
    domains: dict[tuple[int, str], list[PodGroup]] = {}
    for group in groups:
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
    return _kind(group.frozen, group.wants, group.near)


@lru_cache(maxsize=4096)
def _kind(request: Frozen, wants: NodeWants, near: bool) -> Kind:
    return Kind(tuple((name, amount) for name, amount in request if amount > 0), wants, near)


@lru_cache(maxsize=4096)
def unlabelled(kind: Kind) -> Kind:
    """Return a kind without the labels of its pods, which matter to anti-affinity alone."""
    return Kind(kind.request, replace(kind.wants, apart=(), labels=()), kind.near)


def kinds_of(items: Mapping[Item, int]) -> Counter[Kind]:
    """Return the pods of all items by kind."""
    found: Counter[Kind] = Counter()
    for item, number in items.items():
        if isinstance(item, Kind):
            found[item] += number
        else:
            for kind, each in kinds_in(item).items():
                found[kind] += number * each
    return found


def all_unlabelled(items: Mapping[Item, int]) -> Counter[Item]:
    """Return the items without the labels of their pods."""
    found: Counter[Item] = Counter()
    for item, number in items.items():
        found[unlabelled(item) if isinstance(item, Kind) else bare(item)] += number
    return found


@lru_cache(maxsize=4096)
def bare(block: Bundle) -> Bundle:
    """Return a block without the labels of its pods."""
    return Bundle(
        block.tier,
        block.tier_name,
        tuple((unlabelled(kind), each) for kind, each in block.kinds),
        tuple((bare(part), each) for part, each in block.parts),
    )


def _block(outer: Domain, mates: Sequence[PodGroup]) -> Bundle:
    kinds: Counter[Kind] = Counter()
    parts: Counter[Bundle] = Counter()
    for group in mates:
        each, kind = group.domains[0].each, kind_of(group)
        if len(group.domains) > 1 and group.domains[1].each:
            inner = group.domains[1]
            part = Bundle(inner.tier, inner.tier_name, ((kind, inner.each),))
            parts[part] += each // inner.each
        else:
            kinds[kind] += each
    return Bundle(outer.tier, outer.tier_name, tuple(kinds.items()), tuple(parts.items()))


@lru_cache(maxsize=4096)
def kinds_in(block: Bundle) -> Counter[Kind]:
    """Return the pods of a block by kind."""
    found: Counter[Kind] = Counter(dict(block.kinds))
    for part, number in block.parts:
        for kind, each in kinds_in(part).items():
            found[kind] += number * each
    return found
