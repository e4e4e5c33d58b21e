"""Backfill by estimates (EASY): until when others may use what is kept for the head of a line.

The running times that HyperJobs estimate (`templateSpec.runningEstimate`) say when the head of a
line has room at last. Until then the room that is kept for it may hold HyperJobs that
end before, by their own estimates. A holder without an estimate never ends here, and a HyperJob
without one is never let in before the head: without estimates all is as if there were no backfill.

The head starts no later than without backfill if estimates hold. Where they do not, it starts later
by at most the time that the HyperJobs let in before it run beyond their estimates: after the
expected start no other HyperJob is let in. (D. Lifka, The ANL/IBM SP Scheduling System, 1995.)
"""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta

from controller.model.resources import Resources, fits
from controller.model.waiting import Start
from controller.model.wire import timestamp
from controller.queueing.entries import Entry, ExpectedEnd, Pending
from controller.queueing.queues import Tree
from controller.queueing.room import Space


def estimate_of(entry: Entry, tree: Tree) -> timedelta | None:
    """Return how long a HyperJob runs by its own estimate, or by the default of its queues."""
    if entry.unit.estimate is not None:
        return entry.unit.estimate
    queues = {part.queue for part in entry.unit.parts}
    defaults = [tree.queues[name].estimate for name in sorted(queues) if name in tree.queues]
    known = [each for each in defaults if each is not None]
    return max(known) if known and len(known) == len(queues) else None


def end_of(key: str, entry: Entry, tree: Tree, *, now: datetime) -> ExpectedEnd | None:
    """Return when a HyperJob ends that holds a share; None where no estimate supports a time.

    What does not run yet begins now. What runs beyond its estimate ends now at the earliest.
    """
    if entry.end is not None and entry.end.at > now:
        return entry.end
    estimate = estimate_of(entry, tree)
    if estimate is None or not entry.holding:
        return None
    since = timestamp(entry.unit.since)
    at = (since or now) + estimate
    end = ExpectedEnd(max(now, at), key, entry.frees, overdue=at <= now)
    if since is not None and entry.unit.estimate is not None:
        entry.end = end  # the same until the HyperJob, or what it holds, is another
    return end


class CapacityTimeline:
    """What is free after each end, worked out once for all heads of a round."""

    def __init__(self, space: Space, ends: Sequence[ExpectedEnd]) -> None:
        """`space` is what is free now; `ends` are sorted by time."""
        self._ends = ends
        self._space = space.emptied(()) if ends else space
        self._freed = self._space.copy()  # after the ends that were looked at
        self._free: list[dict[str, Resources]] = []
        self._sums: list[Resources] = []

    def earliest(self, waiting: Pending) -> Start | None:
        """Return when a gang has room, as ends come to pass; None where all are not enough.

        A gang that has room already waits for another reason: its start is unknown, too.
        """
        ends = self._ends
        if not ends or has_room(waiting, self._space):
            return None
        low, high = self._enough(waiting.shape.needs.floor) - 1, len(ends)  # no room at `low`
        step = 1  # most often one of the first moments with enough of everything is it
        while high - low > 1:
            middle = min(low + step, high - 1) if high == len(ends) else (low + high) // 2
            low, high = (low, middle) if self._has_room(waiting, middle) else (middle, high)
            step *= 2
        if high == len(ends):
            return None
        last = ends[high]
        return Start(last.at, last.key, overdue=last.overdue)

    def _has_room(self, waiting: Pending, number: int) -> bool:
        """Return whether a gang has room after an end."""
        self._look(number)
        space = copy(self._space)
        space.free, space.sum = self._free[number], dict(self._sums[number])
        return has_room(waiting, space)

    def _enough(self, floor: Resources) -> int:
        """Return the first end after which enough is free in all, wherever it is."""
        for number in range(len(self._ends)):
            self._look(number)
            if fits(floor, self._sums[number]):
                return number
        return len(self._ends)

    def _look(self, number: int) -> None:
        """Work out what is free after all ends up to one."""
        for end in self._ends[len(self._free) : number + 1]:
            for cluster, demand in end.frees:
                self._freed.take(cluster, demand, -1)
            self._free.append(dict(self._freed.free))
            self._sums.append(dict(self._freed.sum))


def has_room(waiting: Pending, space: Space) -> bool:
    """Return whether there is room for as many as must start together."""
    needs = waiting.shape.needs
    if not space.allows(needs.floor):
        return False
    return space.holds(
        [part.request for part in waiting.parts],
        needs.standing,
        needs.max_domains,
        least=max(1, needs.needed),
        alike=needs.alike,
    )


def room_for(waiting: Pending, space: Space) -> Mapping[str, str]:
    """Return clusters for as many as must start together, or more; nothing for fewer."""
    needs = waiting.shape.needs
    requests = [part.request for part in waiting.parts]
    least = max(1, needs.needed)
    found = space.assign(requests, needs.standing, needs.max_domains, least=least)
    return found if len(found) >= least else {}
