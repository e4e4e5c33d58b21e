"""Eviction: which HyperJobs make way for another, by reclaim, preemption, or for its age.

Reclaim: HyperJobs of Queues with `reclaimable: true` return borrowed resources to a queue that is
within its share. Preemption: a HyperJob whose PriorityClass allows it stops HyperJobs of lower
priority in its own queue. A head that has waited long stops HyperJobs of its own queue that are not
more urgent and lose little beside what it has waited, each once. Sub-jobs that a HyperJob can spare
(`minReplicas`) go before whole HyperJobs, and before these all that are beyond `replicas`: for any
that waits, whatever its queue, priority and place in line; a head waits for too much now and then.
Of these go first those on the nodes on which the others hold most: whole nodes are left that can
make way for pods as large. All others stop as a whole, for heads alone, and only if the head can
then start. The choice is tried on copies of the usage and of the room.

The summary of a Cluster may count pods too many: of sub-jobs that have just ended, and those that
have just started a second time. While that makes a difference to the choice no HyperJob is stopped,
and room is kept for the head until a summary shows what is so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from hyperjob_core.api.duration import doubled, later
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.placement.room import Room, after_ends, without_doubts
from hyperjob_engine.resources import Resources, accelerator_of, total
from hyperjob_queueing.admit import Grant, charges_of, gang_of, try_to_admit
from hyperjob_queueing.forecast import FORECAST_EVERY
from hyperjob_queueing.leaving import Step, steps_for, steps_of, whole
from hyperjob_queueing.queues import Tree
from hyperjob_queueing.state import QueueState
from hyperjob_queueing.usage import QueueUsage
from hyperjob_queueing.workload import (
    Entry,
    Eviction,
    Pending,
    Rank,
    Victim,
)

_MOST: Final = 64  # at most so many HyperJobs make way for one
_MOST_LAGS: Final = 64  # the longest wait for the next eviction
_MOST_LOSS: Final = timedelta(hours=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_LITTLE: Final = timedelta(minutes=30)
"""Of those with at most so much unsaved work the widest is the first to stop."""
_PART_OF_WAIT: Final = 24
"""A HyperJob loses at most this part of the wait of a head that stops it for its age."""
Victims: TypeAlias = Mapping[str, Victim]


def evict(
    state: QueueState,
    head: str,
    victims: Victims,
    *,
    now: datetime,
    rank: Rank = Rank.HEAD,
) -> None:
    """Start an eviction; the next one for the same head may start after a longer time each."""
    entry = state.entries[head]
    lag = state.settings.lag
    until = later(now, doubled(lag, entry.reclaims, lag * _MOST_LAGS))
    entry.reclaims += 1
    state.eviction = Eviction(head, dict(victims), until, rank)


def is_behind(state: QueueState, key: str) -> bool:
    """Return whether surplus makes way for a HyperJob behind the head of its line."""
    return state.eviction.head == key and state.eviction.rank is Rank.BEHIND


def evicted_for(state: QueueState, key: str) -> str:
    """Return the head of line for which a HyperJob makes way; empty if there is none."""
    return state.eviction.head if key in state.eviction.victims else ""


def may_evict_from(state: QueueState, *, now: datetime) -> datetime | None:
    """Return when the next eviction may start; None while victims hold a share.

    The next eviction for the same head waits in case the first was in vain.
    """
    known = state.eviction
    return None if known.victims else known.until or now


def may_evict(state: QueueState, *, now: datetime) -> bool:
    """Return whether an eviction may start now."""
    moment = may_evict_from(state, now=now)
    return moment is not None and moment <= now


def may_preempt(head: Entry, other: Entry, tree: Tree) -> bool:
    """Return whether a waiting HyperJob may preempt another with a share of the same queue."""
    waiting = head.waiting
    if waiting is None or not head.unit.preempts or other.unit.priority >= head.unit.priority:
        return False
    known = tree.queues.get(waiting.queue)
    return other.queues == {waiting.queue} and known is not None and known.preemption


class Trial:
    """The usage and the room as if some HyperJobs had made way."""

    def __init__(self, usage: QueueUsage, room: Room) -> None:
        self.usage = usage
        self.room = room

    def copy(self) -> "Trial":
        """Return an independent copy."""
        return Trial(self.usage.copy(), self.room.copy())

    def starts(self, waiting: Pending) -> bool:
        """Return whether a HyperJob could start."""
        needs = waiting.shape.needs
        if not self.room.allows(needs.floor):
            return False
        return isinstance(try_to_admit(waiting.parts, needs, self.usage, self.room), Grant)

    def take(self, each: Step, sign: int = 1) -> None:
        """Take a step, or with -1 take it back.

        The first step of a split vacates the nodes of its sub-jobs: all of them start again then,
        on any nodes. The next steps change the sums alone.
        """
        entry, namespace = each.entry, each.entry.unit.key.partition("/")[0]
        for name, freed in each.frees.items():
            if name not in entry.holding:
                continue
            part, cluster = entry.holding[name]
            if freed is None:
                self.usage.count(part, -sign)
                self.room.leave(cluster, f"{namespace}/{name}", part.request.demand, sign)
                continue
            self.usage.add(part.queue, freed, -sign)
            self.room.subtract(cluster, freed, -sign)
            if each.size and not each.place:
                self.room.leave(cluster, f"{namespace}/{name}", {}, sign)


class Holders(NamedTuple):
    """The HyperJobs that hold a share, by their queues, and what is left beside them.

    Those of `surplus` have more sub-jobs than they would like; `left` has what the nodes of those
    that make way first have without all of these.

    `ended` is all as it is after the end of all pods about to end, `emptiest` that with all that
    the summaries may count too much; None if they do not. `without` is it without the surplus. A
    round makes it once for all that wait: a search of all HyperJobs or clusters for each costs too
    much.
    """

    by_queues: Mapping[frozenset[str], Sequence[Entry]]
    surplus: Sequence[Entry]
    left: Mapping[str, int]
    ended: Trial
    emptiest: Trial | None
    without: Trial | None

    def would_start(self, waiting: Pending) -> bool:
        """Return whether a HyperJob has room once all have no more than they would like."""
        return self.without is not None and self.without.starts(waiting)

    def own_are_enough(self, waiting: Pending) -> bool:
        """Return whether a head has room once those of its own queue have stopped for it."""
        trial = self.ended.copy()
        for entry in self.by_queues.get(frozenset((waiting.queue,)), ()):
            if -entry.unit.priority >= waiting.order.urgency:
                trial.take(whole(entry))
        return trial.starts(waiting)


def holders_of(state: QueueState) -> Holders:
    """Return the HyperJobs that hold a share now."""
    found: dict[frozenset[str], list[Entry]] = {}
    for entry in map(state.entries.__getitem__, state.index.holders):
        found.setdefault(entry.queues, []).append(entry)
    room = after_ends(state.last.open)
    beyond = [each for entries in found.values() for each in entries if each.unit.surplus]
    ended, doubtless = Trial(state.usage.copy(), room), without_doubts(room)
    emptiest = Trial(ended.usage, doubtless) if doubtless is not None else None
    without = None
    if beyond:
        without = ended.copy()
        for entry in beyond:
            for each in steps_of(entry, entry.unit.spare)[: entry.unit.surplus]:
                without.take(each)
    return Holders(found, beyond, _left_by(beyond, room), ended, emptiest, without)


def _left_by(beyond: Sequence[Entry], room: Room) -> Mapping[str, int]:
    """Return what the nodes of the sub-jobs that each gives up first have without all surplus."""
    jobs: dict[str, str] = {}
    for entry in beyond:
        key = entry.unit.key
        for place, (_, frees) in enumerate(entry.unit.spare[: entry.unit.surplus]):
            own = (f"{key.partition('/')[0]}/{name}" for name in frees)
            jobs |= dict.fromkeys(own, "" if place else key)
    found = {each.unit.key: 0 for each in beyond}
    for job, left in room.left_by(jobs).items():
        if key := jobs[job]:
            found[key] = max(left, found[key])
    return found


@dataclass(frozen=True, slots=True)
class Search:
    """The search for those that make way for a HyperJob that waits.

    Those that lose little make way only for a head that has waited long, and surplus alone for a
    HyperJob behind it.
    """

    state: QueueState
    waiting: Pending
    holders: Holders
    now: datetime
    rank: Rank

    def victims(self) -> Victims | None:
        """Return the fewest HyperJobs that must make way for the gang of a HyperJob to start.

        None: no choice gives enough room. Empty: HyperJobs that have ended leave enough room, or
        the summaries may count so much too much that another choice is right.
        """
        found = self._beside(self.holders.ended)
        if self.holders.emptiest is None:
            return found
        other = self._beside(self.holders.emptiest)
        return found if other is None or found == other else {}

    def _beside(self, before: Trial) -> Victims | None:
        """Return the fewest HyperJobs that must make way, beside what there is `before`.

        The trial takes the steps of the candidates in order, what HyperJobs can spare before all
        else, and `_fewest` then leaves out those that are not needed. The state stays as it is:
        `evict` records the choice.
        """
        state, waiting, holders, now = self.state, self.waiting, self.holders, self.now
        demands = charges_of(gang_of(waiting, state.usage), state.usage)
        if len(demands) != 1:
            return None
        ((queue, demand),) = demands.items()
        head, known = state.entries[waiting.order.key], self._stoppable(queue, demand)
        if not (known or holders.surplus):
            ended = state.eviction.head == head.unit.key and before.starts(waiting)
            return {} if ended else None
        floor = waiting.shape.needs.floor
        measure = accelerator_of(floor) or ""
        frees = (demand for each in (*holders.surplus, *known) for _, demand in each.frees)
        most = before.room.sum.get(measure, 0) + sum(each.get(measure, 0) for each in frees)
        if most < floor.get(measure, 0):
            return None  # a trial costs a copy of all sums
        # A HyperJob with a grant of this round is not stopped in the same round.
        beyond, ordered = (
            _in_order((e for e in some if e is not head and not e.granted), demand, now=now)
            for some in (holders.surplus, known)
        )
        left = holders.left
        beyond.sort(
            key=lambda e: (e.unit.priority, unsaved(e, now=now) > _LITTLE, left[e.unit.key])
        )
        trial, taken = before.copy(), list[tuple[Step, str]]()
        steps = partial(steps_for, waiting=waiting, room=state.last.open)
        for each in _in_turn(beyond, ordered, steps):
            if len(taken) == _MOST:
                break
            why = self._why(head, each)
            # The usage of the trial shrinks with each victim: a queue lends only down to its share.
            held = total(demand for _, demand in each.entry.frees)
            if why or all(
                trial.usage.has_borrowed_from(name, queue, demand, held=held)
                for name in each.entry.queues
            ):
                trial.take(each)
                taken.append((each, why))
        return _fewest(taken, trial, waiting) if trial.starts(waiting) else None

    def _why(self, head: Entry, step: Step) -> str:
        """Return why a step is taken for one of the same queue; empty if it lends to another."""
        if step.is_surplus:
            return "waits for the room that this one has beyond what it would like"
        if self.rank is Rank.LATE:
            return "has waited long for its room"
        preempts = may_preempt(head, step.entry, self.state.usage.tree)
        return "has a higher priority" if preempts else ""

    def _stoppable(self, queue: str, demand: Resources) -> list[Entry]:
        """Return the HyperJobs of which some may stop as a whole for a head."""
        holders, head = self.holders, self.state.entries[self.waiting.order.key]
        own = holders.by_queues.get(frozenset((self.waiting.queue,)), ())
        if self.rank is Rank.BEHIND:
            return []
        if self.rank is Rank.LATE:
            return [each for each in own if _loses_little(each, head, now=self.now)]
        usage = holders.ended.usage
        known = [each for each in own if may_preempt(head, each, usage.tree)]
        if lenders := _lenders(queue, demand, holders, preempted=known):
            # A demand larger than the share of its queue comes again and again: each stops once.
            once = any(usage.exceeds_share(name, demand) for name in usage.tree.path(queue)[1:])
            for queues, entries in holders.by_queues.items():
                if queues <= lenders:
                    known += (each for each in entries if not (once and each.unit.again))
        return known


def _loses_little(entry: Entry, head: Entry, *, now: datetime) -> bool:
    """Return whether a HyperJob loses little beside what a head of its queue has waited.

    It runs on if it is more urgent, has made way before, or has waited as long for its own start.
    """
    unit, since = entry.unit, timestamp(entry.unit.since)
    if since is None or unit.again or unit.priority > head.unit.priority:
        return False
    waits = now - (timestamp(head.unit.created) or now)
    waited = since - (timestamp(unit.created) or since)
    return waited < waits and unsaved(entry, now=now) <= waits / _PART_OF_WAIT


def _in_turn(
    beyond: Sequence[Entry], ordered: Sequence[Entry], steps: Callable[[Entry], Sequence[Step]]
) -> Iterator[Step]:
    """Yield what may stop: the sub-jobs beyond what HyperJobs would like, for any that waits.

    Then come the sub-jobs that those in order can spare, then these as a whole.
    """
    for entry in beyond:
        yield from (each for each in steps(entry) if each.is_surplus)
    found = [steps(entry) for entry in ordered]
    yield from (each for some in found for each in some[:-1] if not each.is_surplus)
    yield from (some[-1] for some in found)


def loss_of(entry: Entry, *, now: datetime) -> int:
    """Return the loss of a HyperJob that stops now, in accelerator-seconds and nano-units.

    The seconds count from its last checkpoint, else from its start, and then no more than the time
    between checkpoints that it declares. At most one hour counts: silence about checkpoints must
    not spare a HyperJob more than an hour of work would.
    """
    lost = min(_MOST_LOSS, unsaved(entry, now=now))
    return lost // _MICROSECOND * _width(entry) // 10**6


def unsaved(entry: Entry, *, now: datetime) -> timedelta:
    """Return the time whose work a HyperJob loses if it stops now."""
    unit = entry.unit
    kept = timestamp(unit.kept or _since(entry))
    lost = _MOST_LOSS if kept is None else max(timedelta(), now - kept)
    return lost if unit.kept or unit.saves is None else min(lost, unit.saves)


def _width(entry: Entry) -> int:
    """Return the accelerators of a HyperJob in nano-units; one if it has none."""
    held = total(part.request.demand for part, _ in entry.holding.values())
    measure = accelerator_of(held)
    return held[measure] if measure is not None else NANO


def _in_order(holders: Iterable[Entry], floor: Resources, *, now: datetime) -> list[Entry]:
    """Return the HyperJobs in the order of choice for a demand, the first to stop first.

    The order is the lowest priority, then those that lose little: the widest of those that are no
    wider than the demand, so that few stop, then the narrowest of the others. Then come those that
    lose more, the least loss first. Equal ones follow by the latest start, then by name.
    """
    most = floor.get(accelerator_of(floor) or "", NANO)

    def key(entry: Entry) -> tuple[int, ...]:
        loss, width = loss_of(entry, now=now), _width(entry)
        if unsaved(entry, now=now) > _LITTLE:
            return entry.unit.priority, 2, loss
        return entry.unit.priority, int(width > most), width if width > most else -width, loss

    latest = sorted(holders, key=lambda entry: (_since(entry), entry.unit.key), reverse=True)
    return sorted(latest, key=key)


def _fewest(taken: Sequence[tuple[Step, str]], trial: Trial, waiting: Pending) -> Victims:
    """Return those that make way, without steps that are not needed; all are taken before."""
    found: dict[str, Victim] = {}
    for each, why in reversed(taken):
        trial.take(each, -1)
        if not trial.starts(waiting):
            trial.take(each)
            found.setdefault(each.entry.unit.key, Victim(each.size, each.leaving, why))
    return found


def _lenders(
    queue: str, demand: Resources, holders: Holders, *, preempted: Sequence[Entry]
) -> frozenset[str]:
    """Return the queues from which `queue` may reclaim, at most after it has `preempted` its own.

    The HyperJobs of all others need no trial.
    """
    usage = holders.ended.usage
    tree, path = usage.tree, usage.tree.path(queue)
    if not tree.lends:
        return frozenset()
    freed = [part for entry in preempted for part, _ in entry.holding.values()]
    for part in freed:
        usage.count(part, -1)
    found: set[str] = set()
    if any(usage.exceeds_share(e, demand) or usage.is_within_share(e, demand) for e in path[1:]):
        names = {name for queues in holders.by_queues for name in queues}
        found = {name for name in names if usage.has_borrowed_from(name, queue, demand)}
    for part in freed:
        usage.count(part)
    return frozenset(found)


def _since(entry: Entry) -> str:
    return entry.unit.since or entry.unit.created


def next_change(state: QueueState, *, now: datetime) -> timedelta | None:
    """Return the time until a HyperJob may be admitted without a change of an object."""
    if not state.lines and state.grows_at is None:
        return None
    moment = may_evict_from(state, now=now)
    evictions = [moment] if moment is not None and moment > now else []
    rests = (state.entries[key].rests_until for key in state.index.resting)
    ending = state.ending[0].until if state.ending else None
    again = later(now, FORECAST_EVERY) if state.usage.remembers else None
    times = [*evictions, ending, again, state.grows_at, *rests]
    return min((max(each - now, timedelta()) for each in times if each), default=None)
