"""Pods as placement packs them: by kind, and in blocks that one HyperNode must hold."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.nodes import Domain, Frozen, PodGroup
from hyperjob_engine.placement.ground import Kind
from hyperjob_engine.resources import Resources, total


@dataclass(frozen=True, slots=True)
class PodsOfTask:
    """The pods of one task of a vcjob, which Volcano takes in turn with those of other tasks."""

    kind: Kind
    pods: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods that one HyperNode of a tier of at most `tier` must hold, with the blocks in it."""

    tier: int
    tier_name: str
    tasks: tuple[tuple[PodsOfTask, int], ...] = ()
    parts: tuple[tuple["Bundle", int], ...] = ()


Item: TypeAlias = PodsOfTask | Bundle


@dataclass(frozen=True, slots=True)
class Unfit:
    """The nodes hold at most `most` of `wanted` pods of a kind, of those in one block if given."""

    kind: Kind
    wanted: int
    most: int
    block: Bundle | None = None


def items_of(groups: Iterable[PodGroup]) -> Counter[Item]:
    """Return pods by task, and those with domains by block."""
    found: Counter[Item] = Counter()
    domains: dict[tuple[int, str], list[PodGroup]] = {}
    for group in groups:
        if group.domains:
            domains.setdefault((group.domains[0].tier, group.domains[0].key), []).append(group)
        else:
            found[PodsOfTask(kind_of(group), group.number)] += 1
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


@lru_cache(maxsize=4096)
def unlabelled(kind: Kind) -> Kind:
    """Return a kind without the labels of its pods, which matter to anti-affinity alone."""
    return Kind(kind.request, replace(kind.wants, apart=(), labels=()))


def kinds_of(items: Mapping[Item, int]) -> Counter[Kind]:
    """Return the pods of all items by kind."""
    found: Counter[Kind] = Counter()
    for item, number in items.items():
        for kind, each in kinds_in(item).items():
            found[kind] += number * each
    return found


def all_loose(items: Mapping[Item, int]) -> Counter[Item]:
    """Return the items without blocks, except those that want a HyperNode of a name."""
    found: Counter[Item] = Counter()
    for item, number in items.items():
        if isinstance(item, PodsOfTask) or item.tier_name or item.tier < 1:
            found[item] += number
        else:
            for task, each in _tasks_in(item).items():
                found[task] += number * each
    return found


def all_unlabelled(items: Mapping[Item, int]) -> Counter[Item]:
    """Return the items without the labels of their pods."""
    found: Counter[Item] = Counter()
    for item, number in items.items():
        found[_bare_task(item) if isinstance(item, PodsOfTask) else _bare(item)] += number
    return found


@lru_cache(maxsize=4096)
def _bare_task(task: PodsOfTask) -> PodsOfTask:
    return PodsOfTask(unlabelled(task.kind), task.pods)


@lru_cache(maxsize=4096)
def _bare(block: Bundle) -> Bundle:
    """Return a block without the labels of its pods."""
    return Bundle(
        block.tier,
        block.tier_name,
        tuple((_bare_task(task), each) for task, each in block.tasks),
        tuple((_bare(part), each) for part, each in block.parts),
    )


def _block(outer: Domain, mates: Sequence[PodGroup]) -> Bundle:
    """Return the pods that one outer domain of a job has, as a block with its inner domains.

    `mates` are the groups with that outer domain. A domain has `each` pods of a group.
    """
    tasks: Counter[PodsOfTask] = Counter()
    parts: Counter[Bundle] = Counter()
    for group in mates:
        each, kind = group.domains[0].each, kind_of(group)
        if len(group.domains) > 1 and group.domains[1].each:
            inner = group.domains[1]
            part = Bundle(inner.tier, inner.tier_name, ((PodsOfTask(kind, inner.each), 1),))
            parts[part] += each // inner.each
        else:
            tasks[PodsOfTask(kind, each)] += 1
    return Bundle(outer.tier, outer.tier_name, tuple(tasks.items()), tuple(parts.items()))


@lru_cache(maxsize=4096)
def kinds_in(item: Item) -> Counter[Kind]:
    """Return the pods of an item by kind."""
    found: Counter[Kind] = Counter()
    for task, number in _tasks_in(item).items():
        found[task.kind] += number * task.pods
    return found


@lru_cache(maxsize=4096)
def _tasks_in(item: Item) -> Counter[PodsOfTask]:
    if isinstance(item, PodsOfTask):
        return Counter({item: 1})
    found: Counter[PodsOfTask] = Counter(dict(item.tasks))
    for part, number in item.parts:
        for task, each in _tasks_in(part).items():
            found[task] += number * each
    return found


@lru_cache(maxsize=4096)
def demand_in(block: Bundle) -> Resources:
    """Return what all pods of a block request together."""
    kinds = kinds_in(block).items()
    return total({name: each * n for name, each in kind.request} for kind, n in kinds)
