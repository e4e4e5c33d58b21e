"""Whether pods of several kinds find nodes together, whatever order the member's scheduler takes.

A scheduler places one pod after the other and takes none back: where it puts a small pod decides
whether a large one still fits. Pods fit only if they do in every order that is tried here, and on
nodes chosen by filling the fullest and by spreading over the emptiest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import product
from typing import Final, TypeAlias

from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.nodes import Domain, Frozen, PodGroup
from hyperjob_engine.placement.ground import HOSTNAME, Ground, Kind, fullness, room
from hyperjob_engine.resources import Resources, subtract

_ANSWERS: Final = 256  # that a ground remembers


@dataclass(frozen=True, slots=True)
class Bundle:
    """Pods that one HyperNode of a tier of at most `tier` must hold, with the blocks in it."""

    tier: int
    tier_name: str
    kinds: tuple[tuple[Kind, int], ...] = ()
    parts: tuple[tuple["Bundle", int], ...] = ()


Item: TypeAlias = Kind | Bundle
_Ranked: TypeAlias = tuple[float, int, int]


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
            found[kind_of(group.frozen, group.wants)] += group.number
    for mates in domains.values():
        outer = mates[0].domains[0]
        if outer.each:
            found[_block(outer, mates)] += mates[0].number // outer.each
    return found


@lru_cache(maxsize=4096)
def kind_of(request: Frozen, wants: NodeWants) -> Kind:
    """Return the kind of pods, without what they only prefer."""
    asked = tuple((name, amount) for name, amount in request if amount > 0)
    return Kind(
        asked,
        NodeWants(wants.selector, wants.terms, (), wants.tolerations, wants.apart, wants.labels),
    )


@lru_cache(maxsize=4096)
def unlabelled(kind: Kind) -> Kind:
    """Return a kind without the labels of its pods, which matter to anti-affinity alone."""
    wants = kind.wants
    return Kind(kind.request, NodeWants(wants.selector, wants.terms, (), wants.tolerations))


def kinds_of(items: Mapping[Item, int]) -> Counter[Kind]:
    """Return the pods of all items by kind."""
    found: Counter[Kind] = Counter()
    for item, number in items.items():
        if isinstance(item, Kind):
            found[item] += number
        else:
            for kind, each in _kinds_in(item).items():
                found[kind] += number * each
    return found


def overfull(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    """Return which pods all nodes together cannot hold, each kind alone; None: they may fit."""
    wanted, held = _comparable(ground, wanted, held)
    return _overfull(ground, kinds_of(wanted), kinds_of(held))


def unfit(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    """Return which pods of `wanted` find no node beside `held`; None if all of them do.

    `held` are pods that the view of the member does not show yet. A ground knows its last answers.
    """
    wanted, held = _comparable(ground, wanted, held)
    key = frozenset(wanted.items()), frozenset(held.items())
    if key in ground.answers:
        known: Unfit | None = ground.answers[key]
        return known
    if len(ground.answers) >= _ANSWERS:
        ground.answers.clear()
    found = ground.answers[key] = _unfit(ground, wanted, held)
    return found


def _comparable(
    ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]
) -> tuple[Mapping[Item, int], Mapping[Item, int]]:
    """Return the items without the labels of their pods if no pod there keeps away from another."""
    if ground.parting or any(each.wants.apart for each in kinds_of({**held, **wanted})):
        return wanted, held
    return _unlabelled(wanted), _unlabelled(held)


def _overfull(ground: Ground, numbers: Counter[Kind], others: Counter[Kind]) -> Unfit | None:
    for kind, number in numbers.items():
        together, most = number + others[kind], ground.most(kind)
        if together > most:
            return Unfit(kind, together, most)
    return None


def _unfit(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    numbers, others = kinds_of(wanted), kinds_of(held)
    if (found := _overfull(ground, numbers, others)) is not None:
        return found
    waiting = ground.waiting
    everything = numbers + others
    if len(everything.keys() | waiting.keys()) == 1 and _is_loose(wanted) and _is_loose(held):
        together = everything.total() + waiting.total()
        kind = next(iter(everything))
        most = ground.most(kind)
        if _is_exact(kind):
            return None if together <= most else Unfit(kind, together, most)
    if not held and not waiting and _one_block_fits(ground, wanted):
        return None
    if _has_room_in_any_order(ground, wanted, held, everything):
        return None
    return _tried(ground, wanted, held)


def _one_block_fits(ground: Ground, wanted: Mapping[Item, int]) -> bool:
    """Return whether all pods are of one kind, in one block, and a HyperNode holds that alone."""
    if len(wanted) != 1:
        return False
    block, number = next(iter(wanted.items()))
    if not isinstance(block, Bundle) or number != 1 or block.parts or len(block.kinds) != 1:
        return False
    kind, each = block.kinds[0]
    counts = ground.counts(kind)
    return _is_exact(kind) and any(
        sum(counts[i] for i in positions) >= each for positions in allowed(ground, block)
    )


def allowed(ground: Ground, block: Bundle) -> Iterator[frozenset[int]]:
    """Yield the HyperNodes of the tiers that a block allows, the lowest first."""
    highest = block.tier
    if block.tier_name:
        named = [each.tier for each, _ in ground.domains if each.tier_name == block.tier_name]
        highest = max(named, default=-1)
    for each, positions in ground.domains:
        if each.tier <= highest:
            yield positions


def _is_loose(items: Iterable[Item]) -> bool:
    return all(isinstance(item, Kind) for item in items)


def _is_exact(kind: Kind) -> bool:
    """Return whether the sum over nodes is how many pods of a kind fit."""
    return not kind.wants.apart or kind.conflicts(kind) <= {HOSTNAME}


def _unlabelled(items: Mapping[Item, int]) -> Counter[Item]:
    found: Counter[Item] = Counter()
    for item, number in items.items():
        found[unlabelled(item) if isinstance(item, Kind) else _bare(item)] += number
    return found


@lru_cache(maxsize=4096)
def _bare(block: Bundle) -> Bundle:
    return Bundle(
        block.tier,
        block.tier_name,
        tuple((unlabelled(kind), each) for kind, each in block.kinds),
        tuple((_bare(part), each) for part, each in block.parts),
    )


def _block(outer: Domain, mates: Sequence[PodGroup]) -> Bundle:
    kinds: Counter[Kind] = Counter()
    parts: Counter[Bundle] = Counter()
    for group in mates:
        each, kind = group.domains[0].each, kind_of(group.frozen, group.wants)
        if len(group.domains) > 1 and group.domains[1].each:
            inner = group.domains[1]
            part = Bundle(inner.tier, inner.tier_name, ((kind, inner.each),))
            parts[part] += each // inner.each
        else:
            kinds[kind] += each
    return Bundle(outer.tier, outer.tier_name, tuple(kinds.items()), tuple(parts.items()))


@lru_cache(maxsize=4096)
def _kinds_in(block: Bundle) -> Counter[Kind]:
    found: Counter[Kind] = Counter(dict(block.kinds))
    for part, number in block.parts:
        for kind, each in _kinds_in(part).items():
            found[kind] += number * each
    return found


def _has_room_in_any_order(
    ground: Ground,
    wanted: Mapping[Item, int],
    held: Mapping[Item, int],
    numbers: Counter[Kind],
) -> bool:
    """Return whether each kind has room even if all other pods take the most of it that they can.

    False does not mean that there is no room.
    """
    if not (_is_loose(wanted) and _is_loose(held)):
        return False
    others = numbers + ground.waiting
    for kind in numbers:
        left = ground.most(kind) - others[kind]
        if not _is_exact(kind):
            return False
        for other, number in others.items():
            if other is kind or other == kind:
                continue
            keys = kind.conflicts(other)
            if not keys <= {HOSTNAME}:
                return False
            left -= number * (max(ground.counts(kind)) if keys else _loss(kind, other))
        if left < 0:
            return False
    return True


@lru_cache(maxsize=4096)
def _loss(kind: Kind, other: Kind) -> int:
    """Return how many pods of a kind one pod of another takes the room of, on any node."""
    taken = dict(other.request)
    return max((-(-taken.get(name, 0) // amount) for name, amount in kind.request), default=0)


def _tried(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    """Return which pods find no node in some order; None if all of them do in every order."""
    first = [(False, held), (True, wanted)]
    rounds = [first, first[::-1]] if held or ground.waiting else [first]
    for spread, narrow, back, parts in product((True, False), (True, False), (False, True), rounds):
        packing = _Packing(ground, spread=spread, narrow=narrow, back=back)
        if parts[0][0] is False:
            packing.settle(ground.waiting)
        for own, items in parts:
            failed = packing.place(items)
            if failed is None:
                continue
            if own:
                return failed
            alone = _Packing(ground, spread=spread, narrow=narrow, back=back)
            if alone.place(items) is None and parts is not first:
                return _blame(wanted, failed)
    return None


def _blame(wanted: Mapping[Item, int], failed: Unfit) -> Unfit:
    """Return that the first kind of `wanted` has no room beside pods that were placed before."""
    numbers = kinds_of(wanted)
    kind = failed.kind if failed.kind in numbers else next(iter(numbers))
    return Unfit(kind, numbers[kind], 0, failed.block)


class _Packing:
    """One try: each pod goes to the best node by one rule, and stays there.

    `spread`: the emptiest node is the best, else the fullest. `narrow`: only cpu and memory count
    for that. `back`: kinds and HyperNodes are taken from the last to the first, and of nodes that
    are equally good those of different HyperNodes in turn.
    """

    def __init__(self, ground: Ground, *, spread: bool, narrow: bool, back: bool) -> None:
        self._ground = ground
        self._left: list[Resources] = [node.free for node in ground.nodes]
        self._first = ground.fullness(narrow=narrow)
        self._sign = 1 if spread else -1
        self._narrow = narrow
        self._back = back
        self._near: Counter[tuple[Kind, int]] = Counter()
        self._full: dict[int, float] = {}  # of the nodes that have got pods here

    def settle(self, kinds: Mapping[Kind, int]) -> None:
        """Place pods of others, as many as find a node."""
        for kind, number in kinds.items():
            self._put([kind] * number, None)

    def place(self, items: Mapping[Item, int]) -> Unfit | None:
        """Place all items; return the first kind without room."""
        blocks = [(item, number) for item, number in items.items() if isinstance(item, Bundle)]
        for block, number in blocks[::-1] if self._back else blocks:
            for done in range(number):
                if not self._put_block(block, None):
                    kind, each = next(iter(_kinds_in(block).items()))
                    return Unfit(kind, each * number, each * done, block)
        loose = {item: number for item, number in items.items() if isinstance(item, Kind)}
        pods = list(_in_turn(loose, back=self._back))
        placed = self._put(pods, None)
        if placed == len(pods):
            return None
        kind = pods[placed]
        return Unfit(kind, loose[kind], pods[:placed].count(kind))

    def _put(self, pods: Sequence[Kind], within: frozenset[int] | None) -> int:
        """Place pods in order until one finds no node; return how many are placed."""
        heaps: dict[Kind, list[_Ranked]] = {}
        for done, kind in enumerate(pods):
            if kind not in heaps:
                heaps[kind] = self._candidates(kind, within)
            position = self._best(kind, heaps[kind])
            if position is None:
                return done
            self._take(kind, position)
            ranked = self._ranked(position)
            for heap in heaps.values():
                heappush(heap, ranked)
        return len(pods)

    def _put_block(self, block: Bundle, within: frozenset[int] | None) -> bool:
        for domain in self._domains(block, within):
            left, near, full = list(self._left), self._near.copy(), dict(self._full)
            parts = (part for part, number in block.parts for _ in range(number))
            if all(self._put_block(part, domain) for part in parts):
                pods = list(_in_turn(dict(block.kinds), back=self._back))
                if self._put(pods, domain) == len(pods):
                    return True
            self._left, self._near, self._full = left, near, full
        return False

    def _domains(self, block: Bundle, within: frozenset[int] | None) -> Iterator[frozenset[int]]:
        """Yield the HyperNodes that may hold a block, the lowest tier first."""
        counts = {kind: self._ground.counts(kind) for kind in _kinds_in(block)}
        needed = _kinds_in(block).items()
        known = list(allowed(self._ground, block))
        for positions in known[::-1] if self._back else known:
            if within is not None and not positions <= within:
                continue
            if all(sum(counts[kind][i] for i in positions) >= number for kind, number in needed):
                yield positions

    def _candidates(self, kind: Kind, within: frozenset[int] | None) -> list[_Ranked]:
        counts = self._ground.counts(kind)
        positions = range(len(counts)) if within is None else sorted(within)
        found = [self._ranked(i) for i in positions if counts[i]]
        heapify(found)
        return found

    def _best(self, kind: Kind, heap: list[_Ranked]) -> int | None:
        counts = self._ground.counts(kind)
        while heap:
            rank, _, position = heap[0]
            if (
                counts[position]
                and rank == self._rank(position)
                and room(self._left[position], kind.request)
                and self._may_be_at(kind, position)
            ):
                return position
            heappop(heap)
        return None

    def _may_be_at(self, kind: Kind, position: int) -> bool:
        """Return whether no pod that was placed before keeps a kind away from a node."""
        return not any(
            (where := self._ground.domain(position, key)) is not None
            and where == self._ground.domain(other, key)
            for near, other in self._near
            for key in kind.conflicts(near)
        )

    def _take(self, kind: Kind, position: int) -> None:
        self._left[position] = subtract(self._left[position], dict(kind.request))
        self._full[position] = fullness(
            self._left[position], self._ground.nodes[position].allocatable, narrow=self._narrow
        )
        if kind.wants.labels or kind.wants.apart:
            self._near[kind, position] += 1

    def _ranked(self, position: int) -> _Ranked:
        tie = self._ground.scattered[position] if self._back else 0
        return self._rank(position), tie, position

    def _rank(self, position: int) -> float:
        """Return the rank of a node, the least the best: how full it is of all that it has."""
        full = self._full.get(position)
        return self._sign * (self._first[position] if full is None else full)


def _in_turn(kinds: Mapping[Kind, int], *, back: bool) -> Iterator[Kind]:
    """Yield pods in the order in which Volcano takes them: the first of each task, the second..."""
    order = list(kinds)[::-1] if back else list(kinds)
    for index in range(max(kinds.values(), default=0)):
        yield from (kind for kind in order if kinds[kind] > index)
