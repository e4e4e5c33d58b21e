"""One try to pack pods on the nodes of a cluster, by one rule for the best node of each pod."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heapify, heappop, heappush
from math import sqrt
from typing import Final, TypeAlias

from hyperjob_engine.placement.ground import Ground, Kind, fullness, room
from hyperjob_engine.placement.items import Bundle, Item, Unfit, kinds_in
from hyperjob_engine.resources import Resources, subtract

_BALANCED: Final = ("cpu", "memory", "nvidia.com/gpu")
_STEP: Final = 0.02
"""Nodes whose balance differs less than this are equally good: other scores may decide."""

_Key: TypeAlias = tuple[int, int, float, float, int, int]
_Ranked: TypeAlias = tuple[_Key, int]


class Rank(StrEnum):
    """Which node is the best for a pod, after its preferences."""

    FULLEST = "Fullest"
    EMPTIEST = "Emptiest"
    BALANCED = "Balanced"
    """The node whose resources in use become most alike: Volcano's default weights come to that."""


def allowed(ground: Ground, block: Bundle) -> Iterator[frozenset[int]]:
    """Yield the HyperNodes of the tiers that a block allows, the lowest first."""
    highest = block.tier
    if block.tier_name:
        named = [each.tier for each, _ in ground.domains if each.tier_name == block.tier_name]
        highest = max(named, default=-1)
    for each, positions in ground.domains:
        if each.tier <= highest:
            yield positions


class Trial:
    """Each pod goes to the best node by one rule, and stays there.

    `order` is that of the kinds of pods. `back`: HyperNodes are taken from the last to the first,
    and of equally good nodes that one comes first which another kind of pods needs most, then those
    of different HyperNodes in turn.
    """

    def __init__(
        self, ground: Ground, *, rank: Rank, back: bool, order: Mapping[Kind, int]
    ) -> None:
        self._ground = ground
        self._rank = rank
        self._back = back
        self._order = order
        self._left: list[Resources] = [node.free for node in ground.nodes]
        self._near: Counter[tuple[Kind, int]] = Counter()
        self._full: dict[int, float] = {}  # of the nodes that have got pods here
        self._home: frozenset[int] = frozenset()
        self._harms: dict[tuple[Kind, int], float] = {}

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
                    kind, each = next(iter(kinds_in(block).items()))
                    return Unfit(kind, each * number, each * done, block)
        loose = {item: number for item, number in items.items() if isinstance(item, Kind)}
        pods = self._in_turn(loose)
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
            if self._take(kind, position):
                heaps.clear()
            for other, heap in heaps.items():
                heappush(heap, (self._key(other, position), position))
        return len(pods)

    def _put_block(self, block: Bundle, within: frozenset[int] | None) -> bool:
        for domain in self._domains(block, within):
            left, near, full = list(self._left), self._near.copy(), dict(self._full)
            home = self._home
            parts = (part for part, number in block.parts for _ in range(number))
            if all(self._put_block(part, domain) for part in parts):
                pods = self._in_turn(dict(block.kinds))
                if self._put(pods, domain) == len(pods):
                    return True
            self._left, self._near, self._full, self._home = left, near, full, home
        return False

    def _domains(self, block: Bundle, within: frozenset[int] | None) -> Iterator[frozenset[int]]:
        """Yield the HyperNodes that may hold a block, the lowest tier first."""
        counts = {kind: self._ground.counts(kind) for kind in kinds_in(block)}
        needed = kinds_in(block).items()
        known = list(allowed(self._ground, block))
        for positions in known[::-1] if self._back else known:
            if within is not None and not positions <= within:
                continue
            if all(sum(counts[kind][i] for i in positions) >= number for kind, number in needed):
                yield positions

    def _candidates(self, kind: Kind, within: frozenset[int] | None) -> list[_Ranked]:
        counts = self._ground.counts(kind)
        positions = range(len(counts)) if within is None else sorted(within)
        found = [(self._key(kind, i), i) for i in positions if counts[i]]
        heapify(found)
        return found

    def _best(self, kind: Kind, heap: list[_Ranked]) -> int | None:
        counts = self._ground.counts(kind)
        while heap:
            key, position = heap[0]
            if (
                counts[position]
                and room(self._left[position], kind.request)
                and key == self._key(kind, position)
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

    def _take(self, kind: Kind, position: int) -> bool:
        """Place a pod; return whether that changes which nodes are near."""
        self._left[position] = subtract(self._left[position], dict(kind.request))
        self._full[position] = fullness(
            self._left[position], self._ground.nodes[position].allocatable
        )
        if kind.wants.labels or kind.wants.apart:
            self._near[kind, position] += 1
        if not kind.near or position in self._home:
            return False
        self._home = self._ground.around(self._home | {position})
        return True

    def _key(self, kind: Kind, position: int) -> _Key:
        """Return the rank of a node for a pod, the least the best."""
        far = self._ground.tier_around(self._home, position) if kind.near and self._home else 0
        liked = self._ground.liked(kind)[position] if kind.wants.preferred else 0
        harm = self._harm(kind, position) if self._back else 0.0
        turn = self._ground.scattered[position] if self._back else 0
        return far, -liked, self._score(kind, position), -harm, turn, position

    def _score(self, kind: Kind, position: int) -> float:
        if self._rank is Rank.BALANCED:
            balance = _balance(self._left[position], self._ground.nodes[position].allocatable, kind)
            return -(balance // _STEP)
        full = self._full.get(position)
        full = self._ground.fullness[position] if full is None else full
        return full if self._rank is Rank.EMPTIEST else -full

    def _harm(self, kind: Kind, position: int) -> float:
        """Return the greatest share that a node has of the room of another kind."""
        known = self._harms.get((kind, position))
        if known is None:
            known = self._harms[kind, position] = max(
                (
                    self._ground.counts(other)[position] / max(1, self._ground.most(other))
                    for other in self._order
                    if other != kind
                ),
                default=0.0,
            )
        return known

    def _in_turn(self, kinds: Mapping[Kind, int]) -> list[Kind]:
        """Return pods as Volcano takes them: the first of each task, the second of each task..."""
        order = sorted(kinds, key=lambda kind: self._order[kind])
        most = max(kinds.values(), default=0)
        return [kind for index in range(most) for kind in order if kinds[kind] > index]


def _balance(free: Resources, whole: Resources, kind: Kind) -> float:
    """Return how much more alike the shares in use are with a pod than without it, from 0 to 1."""
    request = dict(kind.request)
    known = [name for name in _BALANCED if whole.get(name, 0) > 0]
    before = [1 - free.get(name, 0) / whole[name] for name in known]
    after = [
        share + request.get(name, 0) / whole[name]
        for name, share in zip(known, before, strict=True)
    ]
    return 0.5 + (_deviation(before) - _deviation(after)) / 2


def _deviation(shares: Sequence[float]) -> float:
    if len(shares) < 2:
        return 0.0
    mean = sum(shares) / len(shares)
    return sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))
