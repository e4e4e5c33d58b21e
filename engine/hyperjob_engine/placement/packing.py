"""Whether pods of several kinds find nodes together, whatever order the member's scheduler takes.

A scheduler places one pod after the other and takes none back: where it puts a small pod decides
whether a large one still fits. Volcano's default scores choose the nodes here. Volcano takes the
pods of equal index in an order that stays, and of equally good nodes any, which it draws again in
each cycle. Pods fit only if they do in every order that is tried here, by one of some draws: some
gangs that a scheduler can place by chance count as too large. Pods with anti-affinity must fit both
as Volcano places them, which overlooks some of it, and as they are meant to be placed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import permutations, product
from typing import Final

from hyperjob_engine.placement.ground import HOSTNAME, Ground, Kind
from hyperjob_engine.placement.items import (
    Bundle,
    Item,
    PodsOfTask,
    Unfit,
    all_loose,
    all_unlabelled,
    kinds_in,
    kinds_of,
)
from hyperjob_engine.placement.trial import Trial, allowed

_ANSWERS: Final = 256  # that a ground remembers
_FEW: Final = 3  # kinds of pods of which every order is tried
_MANY: Final = 64  # pods, of which fewer rules are tried: one pod on another node matters less
_DRAWS: Final = 4  # of nodes that are equally good; Volcano draws again in each of its cycles
_SHUFFLES: Final = 2  # of the pods of equal index


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
    """Return the items without the parts that make no difference on the ground.

    Labels of pods matter only if some pod there keeps away from others, blocks only if there are
    HyperNodes.
    """
    if not ground.view.hypernodes:
        wanted, held = all_loose(wanted), all_loose(held)
    if ground.parting or any(each.wants.apart for each in kinds_of({**held, **wanted})):
        return wanted, held
    return all_unlabelled(wanted), all_unlabelled(held)


def _overfull(ground: Ground, numbers: Counter[Kind], others: Counter[Kind]) -> Unfit | None:
    for kind, number in numbers.items():
        together, most = number + others[kind], ground.most(kind)
        if together > most:
            return Unfit(kind, together, most)
    return None


def _unfit(ground: Ground, wanted: Mapping[Item, int], held: Mapping[Item, int]) -> Unfit | None:
    """Return which pods find no node, by the cheapest check that decides.

    Each check before the last is right where it answers: `_overfull` refuses only what no order of
    pods can place, loose pods of one kind are counted exactly, and the next two accept only what
    has room in every order. The rest is tried in many orders.
    """
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
    loose = _is_loose(wanted) and _is_loose(held)
    if loose and _hold_in_any_order(ground, everything, everything + waiting):
        return None
    return _tried(ground, wanted, held)


def _one_block_fits(ground: Ground, wanted: Mapping[Item, int]) -> bool:
    """Return whether all pods are in one block, and a HyperNode holds them in every order."""
    if len(wanted) != 1:
        return False
    block, number = next(iter(wanted.items()))
    if not isinstance(block, Bundle) or number != 1 or block.parts:
        return False
    numbers = kinds_in(block)
    return any(
        _hold_in_any_order(ground, numbers, numbers, each.number) for each in allowed(ground, block)
    )


def _is_loose(items: Iterable[Item]) -> bool:
    return all(isinstance(item, PodsOfTask) for item in items)


def _is_exact(kind: Kind) -> bool:
    """Return whether the sum over nodes is how many pods of a kind fit."""
    return not kind.wants.apart or kind.conflicts(kind) <= {HOSTNAME}


def _hold_in_any_order(
    ground: Ground, numbers: Counter[Kind], others: Counter[Kind], domain: int | None = None
) -> bool:
    """Return whether each kind has room even if all others take the most of it that they can.

    False does not mean that there is no room. `others` includes the pods of `numbers`; `domain` is
    the HyperNode in which all pods have to be.
    """
    for kind in numbers:
        most = ground.most(kind) if domain is None else ground.most_in(kind, domain)
        left = most - others[kind]
        if left < 0 or not _is_exact(kind):
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
    """Return which pods find no node in some order; None if all of them do in every order.

    `held` comes before `wanted` in a round, and after it in the second: the member's scheduler has
    not placed the pods of `held` either. Of the draws of one order a single one has to succeed.
    """
    first = [(False, held), (True, wanted)]
    rounds = [first, first[::-1]] if held or ground.waiting else [first]
    numbers = kinds_of(held) + kinds_of(wanted) + ground.waiting
    is_small = numbers.total() <= _MANY
    orders = _orders(list(numbers))
    orders = orders if is_small else orders[-1:]
    tries = [(order, 0) for order in orders]
    if is_small and len(numbers) > 1:
        tries += [(orders[0], number + 1) for number in range(_SHUFFLES)]
    overlooks = (True, False) if any(kind.wants.apart for kind in numbers) else (True,)
    for (order, shuffle), parts, overlook in product(tries, rounds, overlooks):
        found: Unfit | None = None
        for draw in range(_DRAWS if is_small else 1):
            trial = partial(
                Trial, ground, order=order, draw=draw, shuffle=shuffle, overlooks=overlook
            )
            found = _by_order(trial, parts, ground, wanted, is_second=parts is not first)
            if found is None:
                break
        if found is not None:
            return found
    return None


def _by_order(
    new: Callable[[], Trial],
    parts: Sequence[tuple[bool, Mapping[Item, int]]],
    ground: Ground,
    wanted: Mapping[Item, int],
    *,
    is_second: bool,
) -> Unfit | None:
    """Return which pods of `wanted` find no node in a trial that `new` begins; None if all do.

    `parts` are pairs, in order: whether the pods are those of `wanted`, and the pods. `is_second`:
    `wanted` comes first, and must leave room for pods that alone would fit. Where others come first
    and do not fit, they do not count.
    """
    trial = new()
    if parts[0][0] is False:
        trial.settle(ground.waiting)
    for own, items in parts:
        failed = trial.place(items, earlier=not own)
        if failed is None:
            continue
        if own:
            return failed
        if new().place(items) is None and is_second:
            return _blame(wanted, failed)
    return None


def _orders(kinds: Sequence[Kind]) -> list[dict[Kind, int]]:
    """Return the orders of kinds to try: all of a few kinds, else the given and its reverse."""
    few = len(kinds) <= _FEW
    orders = permutations(kinds) if few else (tuple(kinds), tuple(kinds[::-1]))
    return [{kind: number for number, kind in enumerate(order)} for order in orders]


def _blame(wanted: Mapping[Item, int], failed: Unfit) -> Unfit:
    """Return that the first kind of `wanted` has no room beside pods that were placed before."""
    numbers = kinds_of(wanted)
    kind = failed.kind if failed.kind in numbers else next(iter(numbers))
    return Unfit(kind, numbers[kind], 0, failed.block)
