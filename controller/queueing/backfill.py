"""Backfill by estimates (EASY): until when others may use what is kept for the head of a line.

From the running times that HyperJobs estimate (`templateSpec.runningEstimate`) follows when the
head of a line has room at last. Until then the room that is kept for it may hold HyperJobs that
end before, by their own estimates. A holder without an estimate never ends here, and a HyperJob
without one is never let in before the head: without estimates all is as if there were no backfill.

The head starts no later than without backfill if estimates hold. Where they do not, it starts later
by at most the time that those who were let in run beyond their estimates: after the expected
start none is let in any more. (D. Lifka, The ANL/IBM SP Scheduling System, 1995.)
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.model.resources import Resources, fits
from controller.model.waiting import Start
from controller.model.wire import timestamp
from controller.queueing.entries import Entry, Pending
from controller.queueing.queues import Tree
from controller.queueing.room import Space


@dataclass(frozen=True, slots=True)
class End:
    """When a HyperJob that holds a share ends by its estimate, and what that frees by cluster.

    An `overdue` one runs beyond its estimate: nothing is known of its end.
    """

    at: datetime
    key: str
    frees: tuple[tuple[str, Resources], ...]
    overdue: bool = False


def estimate_of(entry: Entry, tree: Tree) -> timedelta | None:
    """Return how long a HyperJob runs by its own estimate, or by the default of its queues."""
    if entry.unit.estimate is not None:
        return entry.unit.estimate
    queues = {part.queue for part in entry.unit.parts}
    defaults = [tree.queues[name].estimate for name in sorted(queues) if name in tree.queues]
    known = [each for each in defaults if each is not None]
    return max(known) if known and len(known) == len(queues) else None


def end_of(key: str, entry: Entry, tree: Tree, *, now: datetime) -> End | None:
    """Return when a HyperJob ends that holds a share; None where no estimate supports a time.

    What does not run yet begins now. What runs beyond its estimate ends now at the earliest.
    """
    estimate = estimate_of(entry, tree)
    if estimate is None or not entry.holding:
        return None
    since = timestamp(entry.unit.since) or now
    frees = tuple(
        (cluster, part.request.demand) for part, cluster in entry.holding.values() if cluster
    )
    return End(max(now, since + estimate), key, frees, overdue=since + estimate <= now)


class Outlook:
    """What is free after each end, worked out once for all heads of a round."""

    def __init__(self, space: Space, ends: Sequence[End]) -> None:
        """`space` is what is free now; `ends` are sorted by time."""
        self._ends = ends
        self._space = space.emptied(()) if ends else space
        self._free: list[dict[str, Resources]] = []
        self._sums: list[Resources] = []
        freed = self._space.copy()
        for end in ends:
            for cluster, demand in end.frees:
                freed.take(cluster, demand, -1)
            self._free.append(dict(freed.free))
            self._sums.append(dict(freed.sum))

    def earliest(self, waiting: Pending) -> Start | None:
        """Return when a gang has room, as ends come to pass; None where all are not enough.

        What has room already waits for another reason than ends, so nothing is known of it either.
        """
        ends, floor = self._ends, waiting.shape.site.floor
        if not ends or room_for(waiting, self._space):
            return None
        first = bisect_left(self._sums, True, key=lambda sums: fits(floor, sums))
        low, high = first - 1, len(ends)  # no room at `low`; at first none is enough
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
        """Tell whether a gang has room after an end."""
        space = copy(self._space)
        space.free = self._free[number]
        return bool(room_for(waiting, space))


def room_for(waiting: Pending, space: Space) -> Mapping[str, str]:
    """Return clusters for as many as must start together, or more; nothing for fewer."""
    site = waiting.shape.site
    requests = [part.request for part in waiting.parts]
    least = max(1, site.needed)
    found = space.assign(requests, site.standing, site.max_domains, least=least)
    return found if len(found) >= least else {}
