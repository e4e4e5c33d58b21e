"""Growth: HyperJobs that run take more sub-jobs in room that no other HyperJob could start with.

A round asks after all that can start have started. One world starts again as a whole to grow: it
does so only if it gains more than twice what the restart costs, beyond what it would like 32 times
as much, since others may take that back at any time, and at most once in `grows_after`.
What a HyperJob gave up for another one it takes back `grows_after` later at the earliest. While
another queue waits for room, a HyperJob grows only within the share of its own, and one world not
beyond what it would like while any other waits: what it takes there others take back at any time.

The state has a granted size until the status has it, which is seconds: a process that ends in
between grants it again.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob_core.api.duration import later
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.model.line import WaitCode
from hyperjob_queueing.admit import Block, Grant, charges_of, closed, try_to_admit
from hyperjob_queueing.evict import evicted_for, unsaved
from hyperjob_queueing.forecast import end_of
from hyperjob_queueing.reserve import hold
from hyperjob_queueing.state import QueueState
from hyperjob_queueing.workload import Entry, Larger, QueuedHyperJob, Shape

_GRANTED: Final = timedelta(seconds=10)
"""For so long a granted size that the status does not have yet keeps its room from others."""
_GAIN: Final = 2
_GAIN_BEYOND: Final = 32
_WAITS: Final = frozenset({WaitCode.CAPACITY, WaitCode.GUARANTEE, WaitCode.BEHIND})


def resume(state: QueueState, *, now: datetime) -> None:
    """Keep the room of sizes that the last rounds have granted and no status has yet."""
    for entry in map(state.entries.__getitem__, state.index.growing):
        granted = next((each for each in entry.unit.more if each.size == entry.grows), None)
        late = entry.grows_since is None or now >= later(entry.grows_since, _GRANTED)
        if granted is None or late or not _take(state, entry.unit, granted):
            entry.grows, entry.grows_since = (), None


def grow(
    state: QueueState, blocks: Mapping[tuple[str, Shape], Block], *, now: datetime
) -> list[str]:
    """Grant larger sizes, at most one to each HyperJob; return the HyperJobs that have one.

    `blocks` is why others wait. The most urgent come first, of equal ones the oldest.
    """
    state.grows_at, found = None, []
    entries = [state.entries[key] for key in state.index.growing]
    wait = _waiting(state, blocks) if entries else ()
    for entry in sorted(entries, key=lambda each: each.unit.order):
        unit, due = entry.unit, _due(entry.unit, state.settings.grows_after)
        if evicted_for(state, unit.key):
            continue
        if not entry.grows and due > now:
            _look_again(state, due)
        elif not entry.grows and (size := _largest(state, entry, wait, now=now)):
            entry.grows, entry.grows_since = size.size, now
        if entry.grows:
            found.append(unit.key)
    return found


def _largest(
    state: QueueState, entry: Entry, wait: Collection[str], *, now: datetime
) -> Larger | None:
    """Take the room of the largest size that a HyperJob may have now; return it."""
    left = None if entry.unit.restart is None else _left(state, entry, now=now)
    for each in entry.unit.more:
        if not _is_within_share(state, each, wait) or (wait and left is not None and each.beyond):
            continue
        if left is not None and not is_worth(entry, each, left=left, now=now):
            _look_again(state, later(now, state.settings.grows_after))
        elif _take(state, entry.unit, each):
            return each
    return None


def is_worth(entry: Entry, size: Larger, *, left: timedelta, now: datetime) -> bool:
    """Return whether one world gains enough by a restart with a larger size before its end.

    `left` is the time up to its end with the present size. The restart costs the time that those
    before took, and the work since the last save.
    """
    cost = (entry.unit.restart or timedelta()) + unsaved(entry, now=now)
    gain = _GAIN_BEYOND if size.beyond else _GAIN
    return left * (1 - 1 / max(size.pace, 1)) > gain * cost


def _left(state: QueueState, entry: Entry, *, now: datetime) -> timedelta:
    """Return the time up to the end of a HyperJob; if nothing says it, as long as it has run."""
    end, since = end_of(state, entry.unit.key, now=now), timestamp(entry.unit.since)
    return now - (since or now) if end is None or end.overdue else end.at - now


def _due(unit: QueuedHyperJob, grows_after: timedelta) -> datetime:
    """Return from when on a HyperJob may grow: one world also not soon after its start."""
    times = [unit.resized] if unit.restart is None else [unit.resized, unit.since]
    known = [at for each in times if (at := timestamp(each)) is not None]
    return later(max(known), grows_after) if known else datetime.min.replace(tzinfo=UTC)


def _waiting(state: QueueState, blocks: Mapping[tuple[str, Shape], Block]) -> set[str]:
    """Return the queues in which a HyperJob waits that could use room."""
    resting = (state.entries[key].waiting for key in state.index.resting)
    could = state.answers.could
    return {each.queue for each in resting if each is not None} | {
        queue
        for (queue, shape), block in blocks.items()
        if block.code in _WAITS and shape.needs.needed and could.get(shape.needs, True)
    }


def _is_within_share(state: QueueState, size: Larger, wait: Collection[str]) -> bool:
    """Return whether no other queue waits, or those of a HyperJob stay within their shares."""
    return all(
        state.usage.is_within_share(queue, demand) or not any(each != queue for each in wait)
        for queue, demand in charges_of(size.parts, state.usage).items()
    )


def _take(state: QueueState, unit: QueuedHyperJob, size: Larger) -> bool:
    """Take room and quota of the further sub-jobs for the rest of the round; False: there is none.

    What is kept for a head is no room.
    """
    parts, last, usage = size.parts, state.last, state.usage
    shape = state.shapes.of(unit, parts, needed=len(parts))
    if closed(shape.queues, usage) is not None or not last.room.allows(shape.needs.floor):
        return False
    found = try_to_admit(parts, shape.needs, usage, last.room)
    if not isinstance(found, Grant):
        return False
    for part in parts:
        hold(last, part.request, found.clusters[part.name])
        usage.claim(part.queue, usage.charge(part))
    return True


def _look_again(state: QueueState, at: datetime) -> None:
    state.grows_at = at if state.grows_at is None else min(at, state.grows_at)
