"""Backfill by estimates (EASY): until when others may use what is kept for the head of a line.

From the running times that HyperJobs estimate (`templateSpec.runningEstimate`) follows when the
head of a line has room at last. Until then the room that is kept for it may hold HyperJobs that
end before, by their own estimates. A holder without an estimate never ends here, and a HyperJob
without one is never let in before the head: without estimates all is as if there were no backfill.

The head starts no later than without backfill if estimates hold. Where they do not, it starts later
by at most the time that those who were let in run beyond their estimates: after the expected
start none is let in any more. (D. Lifka, The ANL/IBM SP Scheduling System, 1995.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.model.resources import Resources
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


def earliest(waiting: Pending, space: Space, ends: Sequence[End]) -> Start | None:
    """Return when a gang has room, as `ends` come to pass; None where they all are not enough.

    `space` is what is free now, `ends` are sorted by time. What has room already waits for another
    reason than ends, so nothing is known of it either.
    """
    freed = space.emptied(())
    if not ends or room_for(waiting, freed):
        return None
    moments: list[tuple[End, dict[str, Resources]]] = []
    for end in ends:
        for cluster, demand in end.frees:
            freed.take(cluster, demand, -1)
        if freed.allows(waiting.shape.site.floor):
            moments.append((end, dict(freed.free)))
    low, high = -1, len(moments)  # it has no room at `low`, and none is known to be enough at first
    step = 1  # most often one of the first moments with enough of everything is it
    while high - low > 1:
        middle = min(low + step, high - 1) if high == len(moments) else (low + high) // 2
        freed.free = moments[middle][1]
        low, high = (low, middle) if room_for(waiting, freed) else (middle, high)
        step *= 2
    if high == len(moments):
        return None
    last = moments[high][0]
    return Start(last.at, last.key, overdue=last.overdue)


def room_for(waiting: Pending, space: Space) -> Mapping[str, str]:
    """Return clusters for as many as must start together, or more; nothing for fewer."""
    site = waiting.shape.site
    requests = [part.request for part in waiting.parts]
    least = max(1, site.needed)
    found = space.assign(requests, site.standing, site.max_domains, least=least)
    return found if len(found) >= least else {}
