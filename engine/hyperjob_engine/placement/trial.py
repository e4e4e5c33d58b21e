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

_GPU: Final = "nvidia.com/gpu"
_BALANCED: Final = ("cpu", "memory", _GPU)

_Key: TypeAlias = tuple[int, float, float, int, int]
_Ranked: TypeAlias = tuple[_Key, int]


class Rank(StrEnum):
    """Which node is the best for a pod."""

    FULLEST = "Fullest"
    EMPTIEST = "Emptiest"
    DEFAULT = "Default"
    """The node with the highest score by Volcano's default configuration."""


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
    of different HyperNodes in turn. By the default rank, `draw` chooses among equal nodes, as
    Volcano does at random. `shuffle` is another order of the pods of equal index; 0: that of kinds.
    """

    def __init__(
        self,
        ground: Ground,
        *,
        rank: Rank,
        back: bool,
        order: Mapping[Kind, int],
        draw: int = 0,
        shuffle: int = 0,
    ) -> None:
        self._ground = ground
        self._rank = rank
        self._back = back
        self._order = order
        self._draw = draw
        self._shuffle = shuffle
        self._left: list[Resources] = [node.free for node in ground.nodes]
        self._near: Counter[tuple[Kind, int]] = Counter()
        self._full: dict[int, float] = {}  # of the nodes that have got pods here
        self._home: frozenset[int] = frozenset()
        # Nodes in one state share its values: what is left after a pod of a kind, and its score.
        self._after: dict[tuple[int, Kind], Resources] = {}
        self._scores: dict[tuple[int, int, Kind], float] = {}
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
        state = id(self._left[position]), kind
        left = self._after.get(state)
        if left is None:
            left = self._after[state] = subtract(self._left[position], dict(kind.request))
        self._left[position] = left
        if self._rank is not Rank.DEFAULT:
            self._full[position] = fullness(left, self._ground.nodes[position].allocatable)
        if kind.wants.labels or kind.wants.apart:
            self._near[kind, position] += 1
        if not kind.near or position in self._home:
            return False
        self._home = self._ground.around(self._home | {position})
        return True

    def _key(self, kind: Kind, position: int) -> _Key:
        """Return the rank of a node for a pod, the least the best."""
        far = self._ground.tier_around(self._home, position) if kind.near and self._home else 0
        liked = self._ground.liked(kind) if kind.wants.preferred else None
        if self._rank is Rank.DEFAULT:
            whole, left = self._ground.nodes[position].allocatable, self._left[position]
            state = id(left), id(whole), kind
            known = self._scores.get(state)
            if known is None:
                known = self._scores[state] = round(_default_score(left, whole, kind), 6)
            score = known
            if liked is not None and (most := max(liked)):
                score += 2 * (100 * liked[position] // most)
            turn = _mixed(self._draw, position, self._order[kind]) if self._draw else 0
            return far, -score, 0.0, turn, position
        harm = self._harm(kind, position) if self._back else 0.0
        turn = self._ground.scattered[position] if self._back else 0
        full = self._full.get(position)
        full = self._ground.fullness[position] if full is None else full
        score = (1.0 - full if self._rank is Rank.EMPTIEST else full) / 2.0
        score += 0 if liked is None else liked[position]
        return far, -score, -harm, turn, position

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
        if not self._shuffle:
            return [kind for index in range(most) for kind in order if kinds[kind] > index]
        pods: list[Kind] = []
        for index in range(most):
            mates = [kind for kind in order if kinds[kind] > index]
            pods += sorted(mates, key=lambda each: _mixed(self._shuffle, index, self._order[each]))
        return pods


def _default_score(free: Resources, whole: Resources, kind: Kind) -> float:
    """Return the score of a node by Volcano's default weights, from 0 to about 300.

    It is the sum of the plugins nodeorder (least requested and balanced resources) and binpack,
    each rounded as there: small differences decide between nodes that are almost equal.
    """
    request = dict(kind.request)
    before, after, least, packed = [], [], list[int](), []
    for name in _BALANCED:
        amount, wanted = whole.get(name, 0), request.get(name, 0)
        if amount <= 0 or (name == _GPU and not wanted):
            continue
        used = amount - free.get(name, 0)
        before.append(min(1.0, used / amount))
        after.append(min(1.0, (used + wanted) / amount))
        if name != _GPU:
            least.append((amount - used - wanted) * 100 // amount)
            packed += [(used + wanted) / amount] if wanted else []
    score = 50 + (50 + _evenness(after) - _evenness(before)) // 2
    score += sum(least) // len(least) if least else 0
    return score + (100 * sum(packed) / len(packed) if packed else 0.0)


def _evenness(shares: Sequence[float]) -> int:
    """Return how alike the shares in use are, from 50 to 100."""
    if len(shares) < 2:
        return 100
    mean = sum(shares) / len(shares)
    return int(100 * (1 - sqrt(sum((each - mean) ** 2 for each in shares) / len(shares))))


def _mixed(*numbers: int) -> int:
    """Return a number without order, by which equals are sorted as if at random."""
    mixed = 0
    for number in numbers:
        mixed = (mixed ^ number + 1) * 2654435761 % (1 << 32)
        mixed ^= mixed >> 15
    return mixed
