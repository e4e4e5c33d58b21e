"""The choice of HyperJobs that make way for a head of line: by reclaim and by preemption.

Reclaim: HyperJobs of Queues with `reclaimable: true` return borrowed resources to a queue that is
within its share. Preemption: a HyperJob whose PriorityClass allows it stops HyperJobs of lower
priority in its own queue. A HyperJob is stopped as a whole, and only if the head can then start.
The choice is tried on copies of the account and of the space.
"""

from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Final

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.queueing.account import QueueUsage
from hyperjob_engine.queueing.admit import Grant, gang_of, try_to_admit
from hyperjob_engine.queueing.cache import QueueCache
from hyperjob_engine.queueing.entries import Entry, Pending
from hyperjob_engine.queueing.queues import Tree
from hyperjob_engine.queueing.reclaims import may_preempt
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.resources import Resources, accelerator_of, total

_MOST: Final = 64  # at most so many HyperJobs make way for one


def borrowers_for(cache: QueueCache, waiting: Pending, *, now: datetime) -> Sequence[str] | None:
    """Return the fewest HyperJobs that must make way for a HyperJob to start.

    The order of choice is the lowest priority, then the least loss (`loss_of`), then the latest
    start, then the name. None: no choice gives enough room. Empty: ended HyperJobs leave enough
    room, and the engine waits until the Clusters' status shows it.
    """
    gang = gang_of(waiting.parts, waiting.shape.needs, cache.account)
    queues = {part.queue for part in gang}
    if len(queues) != 1:
        return None
    queue, demand = queues.pop(), total(part.request.demand for part in gang)
    head, tree = cache.entries[waiting.order[2]], cache.account.tree
    lenders = _lenders(queue, tree)
    known = [
        entry
        for entry in (cache.entries[key] for key in cache.holders)
        if entry.queues <= lenders or may_preempt(head, entry, tree)
    ]
    if not known and cache.reclaiming() is None:
        return None
    trial = _Trial(waiting, cache.account.copy(), cache.room_after_ends())
    if not known:
        return None if not trial.is_enough() else ()
    # A HyperJob with a grant of this round is not stopped in the same round.
    holders = [entry for entry in known if entry is not head and not entry.granted]
    holders.sort(key=lambda entry: (_since(entry), entry.unit.key), reverse=True)
    holders.sort(key=lambda entry: loss_of(entry, now=now))
    holders.sort(key=lambda entry: entry.unit.priority)
    taken: list[Entry] = []
    for entry in holders:
        if len(taken) == _MOST:
            break
        if may_preempt(head, entry, tree) or all(
            trial.account.has_borrowed_from(each, queue, demand) for each in entry.queues
        ):
            trial.take_from(entry)
            taken.append(entry)
    if not trial.is_enough():
        return None
    taken = _shortest(taken, trial)
    needed = []
    for entry in reversed(taken):
        trial.give_to(entry)
        if not trial.is_enough():
            trial.take_from(entry)
            needed.append(entry.unit.key)
    return needed


def _shortest(taken: list[Entry], trial: "_Trial") -> list[Entry]:
    """Return the shortest prefix of `taken` that frees enough; return the others' in the trial."""
    short, enough = -1, len(taken)
    standing = enough  # the number of HyperJobs that the trial has stopped
    while enough - short > 1:
        middle = (short + enough) // 2
        for entry in taken[middle:standing]:
            trial.give_to(entry)
        for entry in taken[standing:middle]:
            trial.take_from(entry)
        standing = middle
        short, enough = (short, middle) if trial.is_enough() else (middle, enough)
    for entry in taken[standing:enough]:
        trial.take_from(entry)
    return taken[:enough]


def loss_of(entry: Entry, *, now: datetime) -> float:
    """Return the loss of a HyperJob that stops now, in accelerator-seconds.

    The seconds count from its last checkpoint, else from its start. A HyperJob without accelerators
    counts as one accelerator.
    """
    kept = timestamp(entry.unit.kept or _since(entry))
    if kept is None:
        return inf
    held = total(part.request.demand for part, _ in entry.holding.values())
    measure = accelerator_of(held)
    width = held[measure] / NANO if measure is not None else 1.0
    return max(0.0, (now - kept).total_seconds()) * width


def _lenders(queue: str, tree: Tree) -> frozenset[str]:
    """Return the queues from which `queue` may ever reclaim resources."""
    if not tree.lends:
        return frozenset()
    return frozenset(each for each in tree.queues if tree.lent(each, queue) is not None)


def _since(entry: Entry) -> str:
    return entry.unit.since or entry.unit.created


class _Trial:
    """Copies of the account and the space, as if some HyperJobs had been stopped."""

    def __init__(self, waiting: Pending, account: QueueUsage, space: Space) -> None:
        self._waiting = waiting
        self.account = account
        self._space = space

    def take_from(self, entry: Entry) -> None:
        self._move(entry, -1)

    def give_to(self, entry: Entry) -> None:
        self._move(entry, 1)

    def is_enough(self) -> bool:
        """Return whether the head of line could start."""
        needs = self._waiting.shape.needs
        if not self._space.allows(needs.floor):
            return False
        found = try_to_admit(self._waiting.parts, needs, self.account, self._space)
        return isinstance(found, Grant)

    def _move(self, entry: Entry, sign: int) -> None:
        for part, cluster in entry.holding.values():
            demand: Resources = part.request.demand
            self.account.add(part.queue, demand, sign)
            self._space.take(cluster, demand, sign)
