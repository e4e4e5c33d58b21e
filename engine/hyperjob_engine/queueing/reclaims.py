"""The present reclaim: the HyperJobs that make way, and for which head of line; one at a time.

The module `reclaim` chooses them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from hyperjob_engine.queueing.entries import Entry
from hyperjob_engine.queueing.queues import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """`borrowers` make way for the head of a line; the next reclaim starts at `until`."""

    head: str
    borrowers: set[str]
    until: datetime


class Reclaims:
    """The present reclaim, if there is one."""

    def __init__(self, entries: Mapping[str, Entry], *, lag: timedelta) -> None:
        """`lag` is the longest time until a Cluster's status no longer counts deleted pods."""
        self._entries = entries
        self._lag = lag
        self._began: datetime | None = None
        self._current: Reclaim | None = None

    def begin(self, *, now: datetime) -> None:
        """Record the first round: the previous leader may have started a reclaim just before."""
        self._began = self._began or now

    def start(self, head: str, borrowers: Iterable[str], *, now: datetime) -> None:
        """Start a reclaim; the next one for the same head may start after a longer time each."""
        entry = self._entries[head]
        until = now + self._lag * (1 << min(entry.reclaims, 6))
        entry.reclaims += 1
        self._current = Reclaim(head=head, borrowers=set(borrowers), until=until)

    def stop(self) -> None:
        """End the present reclaim."""
        self._current = None

    def gave_back(self, key: str) -> None:
        """Record that a HyperJob holds no share any more."""
        if self._current is not None:
            self._current.borrowers.discard(key)

    def current(self) -> Reclaim | None:
        """Return the present reclaim; None if there is none or its head no longer waits."""
        if self._current is not None:
            entry = self._entries.get(self._current.head)
            waiting = entry.waiting if entry is not None else None
            if waiting is None or not waiting.shape.needs.needed:
                self._current = None
        return self._current

    def head_for(self, key: str) -> str:
        """Return the head of line for which a HyperJob makes way; empty if there is none."""
        known = self.current()
        return known.head if known is not None and key in known.borrowers else ""

    def is_preempted(self, key: str, tree: Tree) -> bool:
        """Return whether a HyperJob makes way for one of higher priority in its own queue."""
        known = self.current()
        if known is None or key not in known.borrowers:
            return False
        return may_preempt(self._entries[known.head], self._entries[key], tree)

    def may_start_from(self, tree: Tree) -> datetime | None:
        """Return when the next reclaim may start; None while borrowers still hold a share.

        A new leader does not know yet what the previous one reclaimed, and waits.
        """
        if not (tree.lends or tree.preempts) or self._began is None:
            return None
        known = self.current()
        if known is None:
            return self._began + self._lag
        return None if known.borrowers else known.until


def may_preempt(head: Entry, other: Entry, tree: Tree) -> bool:
    """Return whether a waiting HyperJob may preempt another with a share of the same queue."""
    waiting = head.waiting
    if waiting is None or not head.unit.preempts or other.unit.priority >= head.unit.priority:
        return False
    known = tree.queues.get(waiting.queue)
    return other.queues == {waiting.queue} and known is not None and known.preemption
