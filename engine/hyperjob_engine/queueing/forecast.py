"""The expected starts of HyperJobs behind the head of a line, from the estimates of all before.

The forecast places the waiting HyperJobs one after the other into the room that expected ends free:
none starts before the HyperJob ahead of it. In reality a HyperJob may pass others and start
earlier, and a later HyperJob of higher priority may delay it. Without one of the estimates that a
time depends on, there is no expected start.
"""

from bisect import insort
from collections.abc import Iterator
from datetime import datetime

from hyperjob_engine.queueing.backfill import estimate_of, has_room, room_for
from hyperjob_engine.queueing.cache import FOLLOWED, QueueCache
from hyperjob_engine.queueing.entries import Entry, ExpectedEnd, Pending
from hyperjob_engine.reasons.waiting import Start, WaitCode


def forecasts(cache: QueueCache, *, now: datetime) -> dict[str, Start]:
    """Return the expected starts of the first HyperJobs of every line, heads included, by key."""
    space, ends = cache.open.emptied(()), list(cache.ends(now=now))
    found: dict[str, Start] = {}
    last: ExpectedEnd | None = None
    position = 0
    for key, entry, waiting in _in_turn(cache):
        while not (fits := has_room(waiting, space)) and position < len(ends):
            last = ends[position]
            position += 1
            for cluster, demand in last.frees:
                space.take(cluster, demand, -1)
        clusters = room_for(waiting, space) if fits else {}
        if not clusters or (last is not None and last.overdue):
            break  # the starts behind it are unknown too
        if last is not None and last.key:
            found[key] = Start(last.at, last.key)
        taken = [(part, clusters[part.name]) for part in waiting.parts if part.name in clusters]
        for part, cluster in taken:
            space.take(cluster, part.request.demand)
        estimate = estimate_of(entry, cache.account.tree)
        if estimate is not None:
            at = (last.at if last is not None else now) + estimate
            frees = tuple((cluster, part.request.demand) for part, cluster in taken)
            insort(
                ends, ExpectedEnd(at, key, frees), lo=position, key=lambda end: (end.at, end.key)
            )
    return found


def _in_turn(cache: QueueCache) -> Iterator[tuple[str, Entry, Pending]]:
    """Yield the first HyperJobs of all lines that wait for room: all heads, then all seconds."""
    firsts = sorted(
        (place, queue, order[2])
        for queue in cache.lines.queues()
        for place, order in enumerate(cache.lines.line(queue)[:FOLLOWED])
    )
    for _, _, key in firsts:
        entry = cache.entries[key]
        block, waiting = cache.block_of(entry), entry.waiting
        if waiting is None or block is None or not waiting.shape.needs.needed:
            continue
        if cache.exceeds(waiting):
            continue
        if block.code in (WaitCode.CAPACITY, WaitCode.BEHIND) and cache.could.get(
            waiting.shape.needs, True
        ):
            yield key, entry, waiting
