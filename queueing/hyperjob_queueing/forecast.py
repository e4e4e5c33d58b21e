"""Expected ends and starts, for the messages of those that wait.

The expected ends of running HyperJobs give the time at which the head of a line has room. An end
comes from the first of these that is known: the steps left and the speed that the program reports,
`templateSpec.runningEstimate`, the default of the queue, what earlier runs took that were longer
than it has run by now, `activeDeadlineSeconds`, which also bounds the others. Before a HyperJob
runs, what is left of its work with its alternatives comes first. One without any of them counts as
endless. An expected end decides which of its alternatives or sizes a HyperJob takes, and nothing
else: none waits longer for the wrong end of another.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.duration import LATEST, later
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.model.line import NEAR, Start, WaitCode
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, fits, total
from hyperjob_queueing.reserve import spots
from hyperjob_queueing.state import QueueState, block_of, exceeds, working_on
from hyperjob_queueing.workload import (
    Entry,
    ExpectedEnd,
    Pending,
    PlacementNeeds,
    QueuedHyperJob,
)

FORECAST_EVERY: Final = timedelta(minutes=5)
_MOST_TRIALS: Final = 4000
"""The most trials of a forecast, each of one kind of HyperJob after one end: some 100 us each."""


def running_time(
    state: QueueState, unit: QueuedHyperJob, ran: timedelta = timedelta()
) -> tuple[timedelta, str] | None:
    """Return how long a HyperJob that has `ran` so long is expected to run, and the source."""
    if unit.remaining is not None and not unit.since:
        return unit.remaining, "what is left of its work"
    if unit.estimate is not None:
        return unit.estimate, "its estimate"
    queues, known = {part.queue for part in unit.parts}, state.usage.tree.queues
    defaults = [known[name].estimate for name in queues if name in known]
    estimates = [each for each in defaults if each is not None]
    if estimates and len(estimates) == len(queues):
        return max(estimates), "the estimate of its queue"
    return state.past.expect(unit.template, min(queues), ran)


def end_of(state: QueueState, key: str, *, now: datetime) -> ExpectedEnd | None:
    """Return when a HyperJob that holds a share ends; None if nothing says it.

    A HyperJob that does not run yet counts from now. A HyperJob beyond its estimate is overdue and
    ends now at the earliest.
    """
    entry = state.entries[key]
    unit, since = entry.unit, timestamp(entry.unit.since)
    if not entry.holding:
        return None
    begin, by_steps = since or now, timestamp(unit.ends) if since else None
    known = [] if by_steps is None or by_steps <= now else [(by_steps, "its progress")]
    if not known and (found := running_time(state, unit, now - begin)) is not None:
        known.append((later(begin, found[0]), found[1]))
    if unit.limit is not None:
        known.append((later(begin, unit.limit), "its activeDeadlineSeconds"))
    if not known:
        return None
    at, by = min(known)
    end = ExpectedEnd(max(now, at), key, entry.frees, overdue=at <= now, by=by)
    if since is not None and by_steps is None:
        entry.end = end  # valid until the HyperJob, its holding or the Queues change
    return end


def ends(state: QueueState, *, now: datetime) -> list[ExpectedEnd]:
    """Return the expected ends of the HyperJobs that hold a share, the soonest first."""
    clusters, known = state.last.open.clusters, []
    for_all = state.usage.tree.estimates or state.past.known
    for key in state.index.holders:
        unit, end = state.entries[key].unit, state.entries[key].end
        if for_all or unit.ends or unit.estimate is not None or unit.limit is not None:
            if end is None or end.at <= now or unit.ends:
                with working_on(key):
                    end = end_of(state, key, now=now)
            if end is not None:
                known.append(end)
    ending = [(cluster.name, total(cluster.ending.values())) for cluster in clusters.values()]
    leaving = tuple((name, demand) for name, demand in ending if demand)
    gone = [ExpectedEnd(now, "", leaving)] if leaving else []
    return sorted([*gone, *known], key=lambda end: (end.at, end.key))


def start_of(state: QueueState, key: str) -> Start | None:
    """Return the expected start of a HyperJob at the head of a line or behind it, if known."""
    start, looked = state.last.starts.get(key), state.last.at
    if start is not None or looked is None:
        return start
    behind = state.later.get(key)
    return behind if behind is not None and behind.at > looked else None


def renew_forecast(state: QueueState, *, now: datetime) -> None:
    """Compute the expected starts behind the heads of lines again, if it is time to.

    Without the start of a head there are none behind it: the old ones stay until they pass.
    """
    made = state.forecast_at
    if state.last.starts and (made is None or now >= made + FORECAST_EVERY):
        state.forecast_at = now
        state.later = forecasts(state, now=now)


class CapacityTimeline:
    """The free resources after each expected end, computed once for all heads of a round."""

    def __init__(self, room: Room, ends: Sequence[ExpectedEnd]) -> None:
        """`room` is that of now; `ends` are sorted by time."""
        self._ends = ends
        self._room = room.after(Vacating.OF_JOBS) if ends else room
        self._freed = self._room.copy()  # after the ends computed so far
        self._after: list[Room] = []  # by the number of the end

    def earliest(self, waiting: Pending) -> Start | None:
        """Return the first expected end after which a gang has room; None if there is none.

        The result is None too for a gang that has room now: it waits for another reason.
        """
        ends = self._ends
        if not ends or spots(waiting, self._room):
            return None
        low, high = self._enough(waiting.shape.needs.floor) - 1, len(ends)  # no room at `low`
        step = 1  # the search widens slowly: mostly one of the first ends gives the room
        while high - low > 1:
            middle = min(low + step, high - 1) if high == len(ends) else (low + high) // 2
            low, high = (low, middle) if self._has_room(waiting, middle) else (middle, high)
            step *= 2
        if high == len(ends) or ends[high].at >= LATEST:
            return None
        last = ends[high]
        return Start(last.at, last.key, overdue=last.overdue, by=last.by)

    def _has_room(self, waiting: Pending, number: int) -> bool:
        """Return whether a gang has room after an end."""
        self._look(number)
        return bool(spots(waiting, self._after[number]))

    def _enough(self, floor: Resources) -> int:
        """Return the first end after which the clusters together have enough free resources."""
        for number in range(len(self._ends)):
            self._look(number)
            if fits(floor, self._after[number].sum):
                return number
        return len(self._ends)

    def _look(self, number: int) -> None:
        """Compute the free resources after all ends up to number `number`."""
        for end in self._ends[len(self._after) : number + 1]:
            for cluster, demand in end.frees:
                self._freed.subtract(cluster, demand, -1)
            self._after.append(self._freed.copy())


def forecasts(state: QueueState, *, now: datetime) -> dict[str, Start]:
    """Return the expected starts of the first HyperJobs of every line, heads included, by key.

    After each expected end those start, in turn, that then have room: a HyperJob passes others as a
    round lets it. HyperJobs that come later may delay it. Without one of the estimates that a time
    depends on, there is no expected start, nor where it is too far away.
    """
    room = state.last.open.after(Vacating.OF_JOBS)
    coming = ends(state, now=now)
    waiting = list(_in_turn(state))
    found: dict[str, Start] = {}
    last: ExpectedEnd | None = None
    most = _MOST_TRIALS // max(1, len({each.shape.needs for _, _, each in waiting}))
    for position in range(most):
        starting = list(_starting(state, waiting, room))
        if starting and last is not None and (last.overdue or last.at >= LATEST):
            return found  # all later starts are unknown too
        for key, entry, frees in starting:
            if last is not None and last.key:
                found[key] = Start(last.at, last.key, by=last.by)
            took, by = running_time(state, entry.unit) or (
                entry.unit.limit,
                "its activeDeadlineSeconds",
            )
            if took is not None:
                until = later(last.at if last is not None else now, took)
                end = ExpectedEnd(until, key, frees, by=by)
                insort(coming, end, lo=position, key=lambda end: (end.at, end.key))
        if position == len(coming) or len(starting) == len(waiting):
            return found
        started = {key for key, *_ in starting}
        waiting = [each for each in waiting if each[0] not in started]
        last = coming[position]
        for cluster, demand in last.frees:
            room.subtract(cluster, demand, -1)
    return found


def _starting(
    state: QueueState, waiting: Iterable[tuple[str, Entry, Pending]], room: Room
) -> Iterator[tuple[str, Entry, tuple[tuple[str, Resources], ...]]]:
    """Yield the HyperJobs that start in the room of now, and take that; with what they hold."""
    failed: set[PlacementNeeds] = set()  # of any queue: the room only shrinks
    held_up: set[str] = set()  # fifo queues whose head does not start, for whatever reason
    for key, entry, each in waiting:
        queue, needs = each.queue, each.shape.needs
        if queue in held_up:
            continue
        clusters = spots(each, room) if needs not in failed else {}
        if not clusters:
            failed.add(needs)
            if (known := state.usage.tree.queues.get(queue)) is not None and known.fifo:
                held_up.add(queue)
            continue
        taken = [(part, clusters[part.name]) for part in each.parts if part.name in clusters]
        for part, cluster in taken:
            room.subtract(cluster, part.request.demand)
        yield key, entry, tuple((cluster, part.request.demand) for part, cluster in taken)


def _in_turn(state: QueueState) -> Iterator[tuple[str, Entry, Pending]]:
    """Yield the first HyperJobs of all lines that wait for room: all heads, then all seconds."""
    firsts = sorted(
        (place, queue, order.key)
        for queue in state.lines.queues()
        for place, order in enumerate(state.lines.line(queue)[:NEAR])
    )
    for _, _, key in firsts:
        entry = state.entries[key]
        block, waiting = block_of(state, entry), entry.waiting
        if waiting is None or block is None or not waiting.shape.needs.needed:
            continue
        if exceeds(state, waiting):
            continue
        if block.code in (WaitCode.CAPACITY, WaitCode.BEHIND) and state.answers.could.get(
            waiting.shape.needs, True
        ):
            yield key, entry, waiting
