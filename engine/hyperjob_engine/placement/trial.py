"""One try to place pods on the nodes of a cluster as Volcano's scheduler places a gang.

Each pod goes to the node with the highest score and stays there. Nodes that are equal for a kind
of pods are one candidate: the time of a try depends on the pods and on how much nodes differ.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from hyperjob_engine.model.wants import parted_by
from hyperjob_engine.placement.ground import Ground, Kind, room
from hyperjob_engine.placement.items import Bundle, Item, PodsOfTask, Unfit, demand_in, kinds_in
from hyperjob_engine.placement.network import WEIGHED, Network, NetworkDomain, Sums
from hyperjob_engine.placement.scores import default_score
from hyperjob_engine.resources import Resources, fits, subtract

_STRIDES: Final = (1, 7, 11, 13, 17, 19, 23, 29)


class _Candidate(NamedTuple):
    """A node for a pod, the best the least; with `mates`, the `number`th of equal nodes."""

    cost: float
    turn: int
    position: int
    number: int = -1
    mates: Sequence[int] = ()


_Queues: TypeAlias = dict[int, list[_Candidate]]
"""Candidates for a kind of pods by the number of their lowest HyperNode, each list a heap."""

_Ranked: TypeAlias = tuple[float, int, int, int]
"""The cost of a node, its turn among equal ones, its position, and its lowest HyperNode."""


class _Team(NamedTuple):
    """Pods that Volcano keeps near each other; `home` is the lowest HyperNode around them."""

    pods: int
    home: int | None
    in_leaf: Counter[int]


class _Tree:
    """The best node for a kind of pods under each HyperNode, with the scores of HyperNodes.

    A pod on a node changes the scores of the HyperNodes around it alone, which `refresh` computes.
    """

    def __init__(self, network: Network, kind: Kind, used: Sequence[Sums]) -> None:
        self._network, self._used = network, used
        self._request = _weighed(kind)
        self._own: dict[int, _Ranked] = {}
        self._best: dict[int, _Ranked] = {}
        self._below: defaultdict[int, dict[int, None]] = defaultdict(dict)

    @property
    def best(self) -> _Ranked | None:
        """Return the best node of all."""
        return self._best.get(len(self._network.domains) - 1)

    def refresh(self, number: int, top: _Candidate | None) -> None:
        """Take over the best node of which a HyperNode is the lowest one."""
        network, path = self._network, self._network.paths[number]
        if top is None:
            self._own.pop(number, None)
        else:
            cost = top.cost - network.missing[number]
            self._own[number] = cost, top.turn, top.position, number
        for below, above in pairwise(path):
            self._below[above][below] = None
        for each in path:
            options = [self._best[below] for below in self._below[each] if below in self._best]
            if (own := self._own.get(each)) is not None:
                options.append(own)
            if not options:
                self._best.pop(each, None)
                continue
            cost, turn, position, lowest = min(options)
            if each != path[-1]:
                cost = round(cost - network.part(each, self._used[each], self._request), 6)
            self._best[each] = cost, turn, position, lowest


def allowed(ground: Ground, block: Bundle) -> Iterator[NetworkDomain]:
    """Yield the HyperNodes of the tiers that a block allows, the lowest first."""
    highest, domains = block.tier, ground.network.domains
    if block.tier_name:
        named = [each.tier for each in domains if each.tier_name == block.tier_name]
        highest = max(named, default=-1)
    for each in domains:
        if each.tier <= highest:
            yield each


class Trial:
    """Each pod goes to the best node by Volcano's default scores, and stays there.

    `order` is that of the kinds of pods. `draw` chooses among equal nodes, as Volcano does at
    random. `shuffle` is another order of the pods of equal index; 0: that of kinds. `overlooks`:
    anti-affinity counts as it does in Volcano, which overlooks some of it (`_part`).
    """

    def __init__(
        self,
        ground: Ground,
        *,
        order: Mapping[Kind, int],
        draw: int = 0,
        shuffle: int = 0,
        overlooks: bool = True,
    ) -> None:
        self._ground, self._network = ground, ground.network
        self._order, self._draw, self._shuffle = order, draw, shuffle
        self._is_flat = not ground.view.hypernodes
        self._left: list[Resources] = [node.free for node in ground.nodes]
        self._used = [each.used for each in ground.network.domains]
        self._touched: set[int] = set()
        self._near: Counter[tuple[Kind, int]] = Counter()
        every = range(len(ground.nodes))
        self._parting = {i for _, i in ground.parting} if overlooks else set(every)
        # Nodes in one state share its values: what is left after a pod of a kind, and its score.
        self._after: dict[tuple[int, Kind], Resources] = {}
        self._scores: dict[tuple[int, int, Kind], float] = {}

    def settle(self, kinds: Mapping[Kind, int]) -> None:
        """Place pods of others, as many as find a node."""
        for kind, number in kinds.items():
            self._put([kind] * number, None)
        self._part()

    def place(self, items: Mapping[Item, int], *, earlier: bool = False) -> Unfit | None:
        """Place all items; return the first kind without room.

        `earlier`: Volcano has placed them before it begins with the next ones.
        """
        alone = len(items) == 1
        for block, number in items.items():
            for done in range(number if isinstance(block, Bundle) else 0):
                if isinstance(block, Bundle) and not self._put_block(block, None, alone=alone):
                    kind, each = next(iter(kinds_in(block).items()))
                    return Unfit(kind, each * number, each * done, block)
        loose = {item: number for item, number in items.items() if isinstance(item, PodsOfTask)}
        pods = self._in_turn(loose)
        placed = self._put(pods, None)
        if earlier:
            self._part()
        if placed == len(pods):
            return None
        kind = pods[placed]
        return Unfit(kind, pods.count(kind), pods[:placed].count(kind))

    def _part(self) -> None:
        """Let the anti-affinity of all pods placed so far count for all others.

        Volcano lists the nodes that have pods with anti-affinity when it begins a cycle. The terms
        of a pod that it places in a cycle count for pods placed later in it on these nodes alone.
        """
        self._parting.update(position for kind, position in self._near if kind.wants.apart)

    def _put(
        self, pods: Sequence[Kind], within: NetworkDomain | None, *, near: bool = False
    ) -> int:
        """Place pods in order until one finds no node; return how many are placed."""
        queues: dict[Kind, _Queues] = {}
        trees: dict[Kind, _Tree] = {}
        team = _Team(len(pods), None, Counter()) if near and not self._is_flat else None
        for done, kind in enumerate(pods):
            if kind not in queues:
                queues[kind] = self._queues(kind, within)
                trees[kind] = self._tree(kind, queues[kind], team)
            if team is not None:
                found = self._nearest(kind, queues[kind], team)
            else:
                found = self._best(kind, queues[kind], trees[kind])
            if found is None:
                return done
            number, position = found
            self._take(kind, position, number)
            if team is not None:
                team = self._joined(team, number)
            for other, by_number in queues.items():
                if self._ground.counts(other)[position]:
                    queue = by_number.setdefault(number, [])
                    heappush(queue, self._single(other, position))
                if team is None:
                    trees[other].refresh(number, self._top(other, by_number.get(number, [])))
        return len(pods)

    def _put_block(
        self, block: Bundle, within: NetworkDomain | None, *, alone: bool = False
    ) -> bool:
        """Place a block in the first HyperNode that holds its parts and its pods; return whether.

        A HyperNode that does not hold all of them keeps none: the state before is restored.
        """
        for domain in self._domains(block, within, alone=alone):
            left, used = list(self._left), list(self._used)
            touched, near = set(self._touched), self._near.copy()
            parts = (part for part, number in block.parts for _ in range(number))
            if all(self._put_block(part, domain) for part in parts):
                pods = self._in_turn(dict(block.tasks))
                if self._put(pods, domain, near=True) == len(pods):
                    return True
            self._left, self._used, self._touched, self._near = left, used, touched, near
        return False

    def _domains(
        self, block: Bundle, within: NetworkDomain | None, *, alone: bool
    ) -> Iterable[NetworkDomain]:
        """Return the HyperNodes that may hold a block, in the order in which Volcano takes them.

        Volcano tries all HyperNodes of a tier and takes the fullest that holds the block. For a
        block `alone` any of them will do: those with the most room come first.
        """
        kinds, demand, found = kinds_in(block), demand_in(block), []
        wanted = tuple(demand.get(name, 0) for name in WEIGHED)
        for each in allowed(self._ground, block):
            if within is not None and not each.positions <= within.positions:
                continue
            most_in, number = self._ground.most_in, each.number
            room_for = min(most_in(kind, number) / least for kind, least in kinds.items())
            if room_for < 1 or not fits(demand, self._ground.free_in(number)):
                continue
            turn = _mixed(self._draw, number) if self._draw else 0
            if alone:
                found.append((0, -room_for, turn, number))
            else:
                packed = self._network.packed(number, self._used[number], wanted)
                found.append((each.tier, -round(packed, 6), turn, number))
        domains = self._network.domains
        return (domains[number] for *_, number in sorted(found))

    def _queues(self, kind: Kind, within: NetworkDomain | None) -> _Queues:
        """Return the candidates for a kind as the nodes are now."""
        domain, counts = None if within is None else within.number, self._ground.counts(kind)
        queues: _Queues = {}
        for i, (number, positions) in enumerate(self._ground.alike(kind, domain)):
            found = queues.setdefault(number, [])
            if (first := self._class(kind, self._drawn(positions, i))) is not None:
                found.append(first)
        for position in self._touched:
            if counts[position] and (within is None or position in within.positions):
                found = queues.setdefault(self._network.lowest[position], [])
                found.append(self._single(kind, position))
        for found in queues.values():
            heapify(found)
        return queues

    def _drawn(self, positions: Sequence[int], number: int) -> Sequence[int]:
        """Return positions in an order that the draw decides."""
        if not self._draw or len(positions) < 2:
            return positions
        size, mixed = len(positions), _mixed(self._draw, number, positions[0])
        strides = [each for each in _STRIDES if size % each or each == 1]
        stride = strides[mixed % len(strides)]
        return [positions[(mixed + i * stride) % size] for i in range(size)]

    def _class(self, kind: Kind, mates: Sequence[int], first: int = 0) -> _Candidate | None:
        """Return the first of equal nodes that has got no pod here; None if all have."""
        for number in range(first, len(mates)):
            position = mates[number]
            if position not in self._touched:
                cost, turn, *_ = self._single(kind, position)
                return _Candidate(cost, turn, position, number, mates)
        return None

    def _single(self, kind: Kind, position: int) -> _Candidate:
        turn = _mixed(self._draw, position, self._order[kind]) if self._draw else 0
        return _Candidate(self._cost(kind, position), turn, position)

    def _cost(self, kind: Kind, position: int) -> float:
        """Return the negative score of a node for a pod, without the part of HyperNodes."""
        whole, left = self._ground.nodes[position].allocatable, self._left[position]
        state = id(left), id(whole), kind
        score = self._scores.get(state)
        if score is None:
            score = self._scores[state] = default_score(left, whole, kind.request)
        return -score - self._ground.leanings(kind)[position]

    def _tree(self, kind: Kind, queues: _Queues, team: _Team | None) -> _Tree:
        tree = _Tree(self._network, kind, self._used)
        for number, queue in queues.items() if team is None else ():
            tree.refresh(number, self._top(kind, queue))
        return tree

    def _best(self, kind: Kind, queues: _Queues, tree: _Tree) -> tuple[int, int] | None:
        """Return the lowest HyperNode and the position of the best node; None: none has room."""
        while (best := tree.best) is not None:
            _, _, position, number = best
            top = self._top(kind, queues[number])
            if top is not None and top.position == position:
                return number, position
            tree.refresh(number, top)
        return None

    def _nearest(self, kind: Kind, queues: _Queues, team: _Team) -> tuple[int, int] | None:
        """Return the same for a pod that Volcano keeps near those of its team."""
        tops = {}
        for number, queue in queues.items():
            top = self._top(kind, queue)
            if top is not None:
                tops[number] = top
        if not tops:
            return None
        scores = self._nearness(tops, queues, team)
        _, _, position, number = min(
            (round(top.cost - scores[number], 6), top.turn, top.position, number)
            for number, top in tops.items()
        )
        return number, position

    def _top(self, kind: Kind, queue: list[_Candidate]) -> _Candidate | None:
        """Return the best candidate of a queue; drop those that are so no longer."""
        while queue:
            top = queue[0]
            position = top.position
            if top.mates:
                if position not in self._touched and self._may_be_at(kind, position):
                    return top
                heappop(queue)
                following = self._class(kind, top.mates, top.number + 1)
                if following is not None:
                    heappush(queue, following)
                continue
            if (
                room(self._left[position], kind.request)
                and top.cost == self._cost(kind, position)
                and self._may_be_at(kind, position)
            ):
                return top
            heappop(queue)
        return None

    def _nearness(
        self, tops: Mapping[int, _Candidate], queues: _Queues, team: _Team
    ) -> Mapping[int, float]:
        """Return the part of HyperNodes in the score of nodes, by lowest HyperNode."""
        network = self._network
        if team.home is None or len(tops) == 1:
            return dict.fromkeys(tops, 0.0)
        scores = {each: network.nearness(team.home, network.leaf(each)) for each in tops}
        most = max(scores.values())
        best = [each for each, score in scores.items() if score == most]
        if len(best) > 1 or len(queues[best[0]]) > 1 or len(tops[best[0]].mates) > 1:
            for each in best:
                scores[each] += 100.0 * team.in_leaf[each] / team.pods
        return scores

    def _joined(self, team: _Team, number: int) -> _Team:
        """Return a team with one more pod."""
        leaf = self._network.leaf(number)
        if leaf is None:
            return team
        team.in_leaf[leaf] += 1
        return team._replace(home=self._network.joined(team.home, leaf))

    def _may_be_at(self, kind: Kind, position: int) -> bool:
        """Return whether no pod that was placed before keeps a kind away from a node."""
        for near, other in self._near:
            if not kind.wants.apart and other not in self._parting:
                continue
            terms = near.wants.apart if other in self._parting else ()
            theirs, ours = (near.wants.labels, terms), (kind.wants.labels, kind.wants.apart)
            for key in parted_by(ours, theirs):
                where = self._ground.domain(position, key)
                if where is not None and where == self._ground.domain(other, key):
                    return False
        return True

    def _take(self, kind: Kind, position: int, number: int) -> None:
        """Place a pod."""
        state = id(self._left[position]), kind
        left = self._after.get(state)
        if left is None:
            left = self._after[state] = subtract(self._left[position], dict(kind.request))
        self._left[position] = left
        self._touched.add(position)
        if kind.wants.labels or kind.wants.apart:
            self._near[kind, position] += 1
        if not self._is_flat:
            request = _weighed(kind)
            for each in self._network.paths[number]:
                pairs = zip(self._used[each], request, strict=True)
                self._used[each] = tuple(used + more for used, more in pairs)

    def _in_turn(self, tasks: Mapping[PodsOfTask, int]) -> list[Kind]:
        """Return pods as Volcano takes them: the first of each task, the second of each task..."""
        order = sorted(tasks, key=lambda task: self._order[task.kind])
        pods: list[Kind] = []
        for index in range(max((task.pods for task in tasks), default=0)):
            mates = [task.kind for task in order for _ in range(tasks[task]) if task.pods > index]
            if self._shuffle:
                turns = {i: _mixed(self._shuffle, index, i) for i in range(len(mates))}
                mates = [mates[i] for i in sorted(turns, key=turns.__getitem__)]
            pods += mates
        return pods


@lru_cache(maxsize=4096)
def _weighed(kind: Kind) -> Sums:
    """Return the amounts of the resources in a pod that scores of HyperNodes weigh."""
    request = dict(kind.request)
    return tuple(request.get(name, 0) for name in WEIGHED)


def _mixed(*numbers: int) -> int:
    """Return a number without order, by which equals are sorted as if at random."""
    mixed = 0
    for number in numbers:
        mixed = (mixed ^ number + 1) * 2654435761 % (1 << 32)
        mixed ^= mixed >> 15
    return mixed
