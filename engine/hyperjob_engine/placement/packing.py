"""Whether pods find room on the nodes of a cluster: counted by kind, and by HyperNode.

Pods of one kind are counted exactly. Pods of several kinds take nodes in the order of the items,
which is that of their vcjob; which nodes, the member's scheduler decides: here each pod takes the
fullest node once, and once that which most of the later kinds need. Blocks take a HyperNode before
all other pods. A gang has room if it has it both times. If it has it with the fullest nodes alone,
it waits, unless the cluster without any other pod is no better: then Volcano decides. Pods that are
promised to others take the fullest nodes that hold them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import Final

from hyperjob_engine.model.request import (
    HOSTNAME,
    Bundle,
    Item,
    Items,
    Kind,
    counted,
    kinds_in,
    kinds_of,
)
from hyperjob_engine.model.wants import keys_of
from hyperjob_engine.placement.ground import Ground, NetworkDomain, Vacating, labelled, room
from hyperjob_engine.resources import Resources, subtract

_ANSWERS: Final = 256  # that a ground remembers


class _Choice(IntEnum):
    """Which node a pod takes: by its room times this number, the least first."""

    FULLEST = 1
    NEEDED = -1
    """Before that, by how many of the later kinds may use the node, the most first."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """The nodes hold at most `most` of `wanted` pods of a kind, of those in one block if given."""

    kind: Kind
    wanted: int
    most: int
    block: Bundle | None = None


def overfull(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    """Return which pods all nodes together cannot hold, each kind alone; None: they may fit."""
    wanted, held, _ = _comparable(ground, wanted, held)
    return _overfull(ground, kinds_of(wanted.items()), kinds_of(held.items()))


def unfit(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    """Return which pods of `wanted` find no node beside `held`; None if all of them do.

    `held` are pods that the view of the member does not show yet. A ground knows its last answers.
    """
    wanted, held, keys = _comparable(ground, wanted, held)
    key = tuple(wanted.items()), frozenset(held.items())
    if key in ground.answers:
        known: Unfit | None = ground.answers[key]
        return known
    if len(ground.answers) >= _ANSWERS:
        ground.answers.clear()
    found = ground.answers[key] = _unfit(ground, wanted, held, keys)
    return found


def _comparable(
    ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]
) -> tuple[Mapping[Item, int], Mapping[Item, int], frozenset[str]]:
    """Return the items without the parts that make no difference on the ground, and label keys.

    Labels of pods matter only as far as some pod selects by their keys those from which it keeps
    away, blocks only if there are HyperNodes.
    """
    terms = (each.wants.apart for each in (*kinds_of(wanted.items()), *kinds_of(held.items())))
    keys = ground.selected | keys_of(chain.from_iterable(terms))
    loose = not ground.view.hypernodes
    return _told(wanted.items(), keys, loose=loose), _told(held.items(), keys, loose=loose), keys


def _told(
    items: Iterable[tuple[Item, int]], keys: frozenset[str], *, loose: bool = False
) -> Counter[Item]:
    """Return the items with those labels of their pods alone that have one of these keys.

    `loose`: without blocks, except those that want a HyperNode of a name.
    """
    pairs = ((_item_told(item, keys, loose=loose), number) for item, number in items)
    return counted((each, number * most) for told, number in pairs for each, most in told)


@lru_cache(maxsize=4096)
def _item_told(item: Item, keys: frozenset[str], *, loose: bool) -> Items:
    if isinstance(item, Kind):
        return ((labelled(item, keys), 1),)
    if loose and not item.tier.name and item.tier.number > 0:
        return tuple(_told(kinds_in(item).items(), keys).items())
    return ((Bundle(item.tier, tuple(_told(item.items, keys).items())), 1),)


def _overfull(ground: Ground, numbers: Counter[Kind], others: Counter[Kind]) -> Unfit | None:
    for kind, number in numbers.items():
        together, most = number + others[kind], ground.most(kind)
        if together > most:
            return Unfit(kind, together, most)
    return None


def _unfit(
    ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int], keys: frozenset[str]
) -> Unfit | None:
    """Answer `unfit` by the cheapest way that is certain: sums, then counts, then filled nodes."""
    numbers, others = kinds_of(wanted.items()), kinds_of(held.items())
    if (found := _overfull(ground, numbers, others)) is not None:
        return found
    everything = numbers + others + ground.waiting(keys)
    if all(isinstance(item, Kind) for item in (*wanted, *held)) and _is_ample(ground, everything):
        return None

    found = _uncertain(ground, wanted, held, keys)
    if found is None or _tried(ground, wanted, held, keys, _Choice.FULLEST):
        return found
    # The gang waits for the end of others, unless it would wait in vain, because nodes without any
    # other pod leave no certain room either.
    return None if _uncertain(ground.vacated(Vacating.ALL), wanted, {}, keys) else found


def _uncertain(
    ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int], keys: frozenset[str]
) -> Unfit | None:
    """Return which pods may find no node, whichever nodes the scheduler chooses."""
    tries = (_tried(ground, wanted, held, keys, each) for each in _Choice)
    return next(filter(None, tries), None)


def _tried(
    ground: Ground,
    wanted: Mapping[Item, int],
    held: Mapping[Item, int],
    keys: frozenset[str],
    choice: _Choice,
) -> Unfit | None:
    """Return which pods find no node where each takes the node of a choice."""
    waiting = ground.waiting(keys)
    fill = _Fill(ground, kinds_of((*wanted.items(), *held.items())) + waiting)
    fill.place(Counter[Item](waiting), _Choice.FULLEST)
    fill.place(held, _Choice.FULLEST)
    return fill.place(wanted, choice)


def _is_ample(ground: Ground, everything: Counter[Kind]) -> bool:
    """Return whether each kind has room even where all pods of others take the most of it.

    False does not mean that there is no room.
    """
    for kind, number in everything.items():
        left = ground.most(kind) - number
        for other, others in everything.items():
            keys = kind.conflicts(other)
            if not keys <= {HOSTNAME}:
                return False
            if other != kind:
                left -= others * (max(ground.counts(kind)) if keys else _loss(kind, other))
        if left < 0:
            return False
    return True


def _loss(kind: Kind, other: Kind) -> int:
    """Return how many pods of a kind one pod of another takes the room of, on any node."""
    taken = dict(other.request)
    asked = ((name, amount) for name, amount in kind.request if amount > 0)
    return max((-(-taken.get(name, 0) // amount) for name, amount in asked), default=0)


def _kinds_among(items: Mapping[Item, int]) -> Mapping[Kind, int]:
    return {item: number for item, number in items.items() if isinstance(item, Kind)}


def _blocks_among(items: Mapping[Item, int]) -> list[tuple[Bundle, int]]:
    return [(item, number) for item, number in items.items() if isinstance(item, Bundle)]


class _Fill:
    """Nodes that are filled pod by pod, with pods of the kinds of `everything`."""

    def __init__(self, ground: Ground, everything: Iterable[Kind]) -> None:
        self._ground = ground
        self._counts = {kind: ground.counts(kind) for kind in everything}
        self._apart = {
            kind: {other: keys for other in self._counts if (keys := kind.conflicts(other))}
            for kind in self._counts
        }
        self._left: list[Resources] = [node.free for node in ground.nodes]
        self._barred: dict[Kind, frozenset[tuple[str, str | None]]] = {}
        """The topology domains that a kind must not use, since pods placed here are there."""

    def place(
        self, items: Mapping[Item, int], choice: _Choice, within: NetworkDomain | None = None
    ) -> Unfit | None:
        """Place all items; return the first kind without room, whose other pods count nothing."""
        lacking = None
        for block, number in _blocks_among(items):
            for done in range(number):
                if not self._put_block(block, within, choice):
                    kind, each = next(iter(kinds_in(block).items()))
                    lacking = lacking or Unfit(kind, each * number, each * done, block)
                    break
        found = self._put(_kinds_among(items), within, choice)
        return lacking or found

    def _put_block(self, block: Bundle, within: NetworkDomain | None, choice: _Choice) -> bool:
        """Place a block in the best HyperNode of the lowest tier that holds it, if any does."""
        items = dict(block.items)
        for domain in self._domains(block, within, choice):
            left, barred = list(self._left), dict(self._barred)
            if self.place(items, choice, domain) is None:
                return True
            self._left, self._barred = left, barred
        return False

    def _domains(
        self, block: Bundle, within: NetworkDomain | None, choice: _Choice
    ) -> Iterator[NetworkDomain]:
        """Yield the HyperNodes that may hold a block, lower tiers first, then by the choice."""
        kinds, domains = kinds_in(block), self._ground.domains
        highest = block.tier.number
        if block.tier.name:
            named = [each.tier for each in domains if each.tier_name == block.tier.name]
            highest = max(named, default=-1)
        found: list[tuple[int, float, int]] = []
        for number, each in enumerate(domains):
            if each.tier > highest or not (within is None or each.positions <= within.positions):
                continue
            left = min(self._room_in(kind, each) / least for kind, least in kinds.items())
            found.append((each.tier, choice * left, number))
        for _, left, number in sorted(found):
            if abs(left) >= 1:
                yield domains[number]

    def _room_in(self, kind: Kind, domain: NetworkDomain) -> int:
        counts = self._counts[kind]
        return sum(
            min(counts[i], room(self._left[i], kind.request)) for i in domain.positions if counts[i]
        )

    def _put(
        self, pods: Mapping[Kind, int], within: NetworkDomain | None, choice: _Choice
    ) -> Unfit | None:
        """Place the pods, kind after kind, and return the first kind without enough nodes."""
        lacking, kinds = None, list(pods)
        for number, kind in enumerate(kinds, start=1):
            heap = self._candidates(kind, within, choice, kinds[number:])
            for done in range(pods[kind]):
                while heap and self._is_barred(kind, heap[0][2]):
                    heappop(heap)
                if not heap:
                    lacking = lacking or Unfit(kind, pods[kind], done)
                    break
                needed, _, position = heap[0]
                self._take(kind, position)
                if left := room(self._left[position], kind.request):
                    heapreplace(heap, (needed, choice * left, position))
                else:
                    heappop(heap)
        return lacking

    def _candidates(
        self, kind: Kind, within: NetworkDomain | None, choice: _Choice, later: Sequence[Kind]
    ) -> list[tuple[int, int, int]]:
        """Return a heap of the nodes with room for a kind: rank by both choices, and position."""
        counts, looks = self._counts[kind], choice is _Choice.NEEDED
        heap = []
        for i in range(len(counts)) if within is None else within.positions:
            if counts[i] and (left := room(self._left[i], kind.request)):
                needed = sum(bool(self._counts[each][i]) for each in later) if looks else 0
                heap.append((-needed, choice * left, i))
        heapify(heap)
        return heap

    def _is_barred(self, kind: Kind, position: int) -> bool:
        barred = self._barred.get(kind)
        return barred is not None and any(
            (key, self._ground.domain(position, key)) in barred
            for key in {key for key, _ in barred}
        )

    def _take(self, kind: Kind, position: int) -> None:
        self._left[position] = subtract(self._left[position], dict(kind.request))
        for other, keys in self._apart[kind].items():
            where = {(key, self._ground.domain(position, key)) for key in keys}
            known = self._barred.get(other, frozenset())
            self._barred[other] = known.union(each for each in where if each[1] is not None)
