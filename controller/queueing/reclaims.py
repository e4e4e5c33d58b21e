"""Which HyperJobs give back what they hold, and for which head of line; one at a time.

`reclaim` chooses them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.queueing.entries import Entry
from controller.queueing.queues import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """The borrowers give back for the head of a line; no other HyperJob has to before `until`."""

    head: str
    borrowers: set[str]
    until: datetime


class Reclaims:
    """The present reclaim, if there is one."""

    def __init__(self, entries: Mapping[str, Entry], *, lag: timedelta) -> None:
        """`lag` is the longest time until a cluster's status shows that pods are gone."""
        self._entries = entries
        self._lag = lag
        self._began: datetime | None = None
        self._current: Reclaim | None = None

    def begin(self, *, now: datetime) -> None:
        """Note the first round: a new controller waits, for its predecessor may have reclaimed."""
        self._began = self._began or now

    def start(self, head: str, borrowers: Iterable[str], *, now: datetime) -> None:
        """Have borrowers give back what they hold; each next time for a head takes longer."""
        entry = self._entries[head]
        until = now + self._lag * (1 << min(entry.reclaims, 6))
        entry.reclaims += 1
        self._current = Reclaim(head=head, borrowers=set(borrowers), until=until)

    def stop(self) -> None:
        """Drop the present reclaim."""
        self._current = None

    def gave_back(self, key: str) -> None:
        """Note that a HyperJob holds nothing any more."""
        if self._current is not None:
            self._current.borrowers.discard(key)

    def current(self) -> Reclaim | None:
        """Return the present reclaim, as long as its head waits for what its gang needs."""
        if self._current is not None:
            entry = self._entries.get(self._current.head)
            waiting = entry.waiting if entry is not None else None
            if waiting is None or not waiting.shape.needs.needed:
                self._current = None
        return self._current

    def head_for(self, key: str) -> str:
        """Name the HyperJob for which another one is to give back what it holds; empty for none."""
        known = self.current()
        return known.head if known is not None and key in known.borrowers else ""

    def is_preempted(self, key: str, tree: Tree) -> bool:
        """Return whether a HyperJob makes way for a more urgent one of its own queue."""
        known = self.current()
        if known is None or key not in known.borrowers:
            return False
        return may_preempt(self._entries[known.head], self._entries[key], tree)

    def may_start_from(self, tree: Tree) -> datetime | None:
        """Return from when borrowers may be asked; None while others have to act before that.

        A controller that has just begun cannot know yet what its predecessor took back.
        """
        if not (tree.lends or tree.preempts) or self._began is None:
            return None
        known = self.current()
        if known is None:
            return self._began + self._lag
        return None if known.borrowers else known.until


def may_preempt(head: Entry, other: Entry, tree: Tree) -> bool:
    """Return whether a HyperJob that waits may stop another with a share of the same queue."""
    waiting = head.waiting
    if waiting is None or not head.unit.preempts or other.unit.priority >= head.unit.priority:
        return False
    known = tree.queues.get(waiting.queue)
    return other.queues == {waiting.queue} and known is not None and known.preemption
