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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from hyperjob_core.api.duration import doubled, later
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.model.subjobs import Choice, Step
from hyperjob_engine.placement.room import Room, after_ends, without_doubts
from hyperjob_engine.queueing.admit import Grant, charges_of, try_to_admit
from hyperjob_engine.queueing.leaving import Leaving, Steps, given_up
from hyperjob_engine.queueing.queues import Tree
from hyperjob_engine.queueing.state import QueueState
from hyperjob_engine.queueing.usage import QueueUsage
from hyperjob_engine.queueing.workload import Entry, Eviction, Pending, QueuedSubJob, Rank
from hyperjob_engine.resources import Resources, accelerator_of, subtract, total

_MOST: Final = 64  # at most so many HyperJobs make way for one
_MOST_LAGS: Final = 64  # the longest wait for the next eviction
_MOST_LOSS: Final = timedelta(hours=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_LITTLE: Final = timedelta(minutes=30)
"""Of those with at most so much unsaved work the widest is the first to stop."""
_PART_OF_WAIT: Final = 24
"""A HyperJob loses at most this part of the wait of a head that stops it for its age."""
Victims: TypeAlias = Mapping[str, Choice]
"""The HyperJobs that make way, each with the size that it takes; empty: it stops as a whole."""


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
    leaving = given_up(state.entries, victims, entry.waiting, state.last.open)
    state.eviction = Eviction(head, dict(victims), until, rank, leaving)


def is_behind(state: QueueState, key: str) -> bool:
    """Return whether surplus makes way for a HyperJob behind the head of its line."""
    return state.eviction.head == key and state.eviction.rank is Rank.BEHIND


def evicted_for(state: QueueState, key: str) -> str:
    """Return the head of line for which a HyperJob makes way; empty if there is none."""
    return state.eviction.head if key in state.eviction.victims else ""


def preempted_since(state: QueueState, key: str) -> str:
    """Return why a HyperJob makes way for one of its own queue, which; empty if it does not."""
    head, known = evicted_for(state, key), state.eviction
    if not head:
        return ""
    if _is_surplus(state.entries[key], known.victims[key]):
        return "waits for the room that this one has beyond what it would like"
    if known.rank is Rank.LATE:
        return "has waited long for its room"
    preempts = may_preempt(state.entries[head], state.entries[key], state.usage.tree)
    return "has a higher priority" if preempts else ""


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


class _Candidate(NamedTuple):
    """What a HyperJob frees that goes on with `size`, or stops if that is empty."""

    entry: Entry
    frees: Mapping[str, Resources | None]
    size: Choice = ()


class Holders(NamedTuple):
    """The HyperJobs that hold a share, by their queues, and the usage without stopping pods.

    Those of `surplus` have more sub-jobs than they would like; `left` has what the nodes of those
    that make way first have without all of these.

    `room` is that after the end of all pods about to end, `emptiest` that with all that the
    summaries may count too much; None if they do not. `without` is the room without the surplus. A
    round makes it once for all that wait: a search of all HyperJobs or clusters for each costs too
    much.
    """

    by_queues: Mapping[frozenset[str], Sequence[Entry]]
    surplus: Sequence[Entry]
    left: Mapping[str, int]
    usage: QueueUsage
    room: Room
    emptiest: Room | None
    without: tuple[QueueUsage, Room] | None


def holders_of(state: QueueState) -> Holders:
    """Return the HyperJobs that hold a share now."""
    found: dict[frozenset[str], list[Entry]] = {}
    for entry in map(state.entries.__getitem__, state.index.holders):
        found.setdefault(entry.queues, []).append(entry)
    room = after_ends(state.last.open)
    beyond = [each for entries in found.values() for each in entries if each.unit.surplus]
    usage, without = state.usage.copy(), None
    if beyond:
        without = usage.copy(), room.copy()
        for each in _candidates(beyond, (), lambda entry: entry.unit.spare):
            _move(each, *without, -1)
    left = _left_by(beyond, room)
    return Holders(found, beyond, left, usage, room, without_doubts(room), without)


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


def would_start(waiting: Pending, holders: Holders) -> bool:
    """Return whether a HyperJob has room once all have no more than they would like."""
    return holders.without is not None and _has_room(waiting, *holders.without)


def victims_for(
    state: QueueState,
    waiting: Pending,
    gang: Sequence[QueuedSubJob],
    holders: Holders,
    *,
    now: datetime,
    rank: Rank = Rank.HEAD,
) -> Victims | None:
    """Return the fewest HyperJobs that must make way for the gang of a HyperJob to start.

    None: no choice gives enough room. Empty: HyperJobs that have ended leave enough room, or the
    summaries may count so much too much that another choice is right. Those that lose little make
    way only for a head that has waited long, and surplus alone for a HyperJob behind it.
    """
    found = _victims(state, waiting, gang, holders, holders.room, now=now, rank=rank)
    if holders.emptiest is None:
        return found
    other = _victims(state, waiting, gang, holders, holders.emptiest, now=now, rank=rank)
    return found if other is None or found == other else {}


def _victims(
    state: QueueState,
    waiting: Pending,
    gang: Sequence[QueuedSubJob],
    holders: Holders,
    room: Room,
    *,
    now: datetime,
    rank: Rank,
) -> Victims | None:
    """Return the fewest HyperJobs that must make way in a room after all ends.

    The trial stops the candidates in order on a copy of usage and room, what HyperJobs can spare
    before all else, and `_fewest` then leaves out those that are not needed. The state stays as it
    is: `evict` records the choice.
    """
    demands = charges_of(gang, state.usage)
    if len(demands) != 1:
        return None
    ((queue, demand),) = demands.items()
    head, tree = state.entries[waiting.order.key], state.usage.tree
    own = holders.by_queues.get(frozenset((waiting.queue,)), ())
    steps = Leaving(waiting, state.last.open).steps
    if rank is Rank.LATE:
        return _that_lose_little(head, waiting, own, holders.usage, room, steps, now=now)
    known: list[Entry] = []
    if rank is Rank.HEAD:
        known += (entry for entry in own if may_preempt(head, entry, tree))
        if lenders := _lenders(queue, demand, holders, preempted=known):
            # A demand larger than the share of its queue comes again and again: each stops once.
            once = any(holders.usage.exceeds_share(name, demand) for name in tree.path(queue)[1:])
            for queues, entries in holders.by_queues.items():
                if queues <= lenders:
                    known += (each for each in entries if not (once and each.unit.again))
    if not (known or holders.surplus) and state.eviction.head != head.unit.key:
        return None
    trial = _Trial(waiting, holders.usage.copy(), room.copy())
    if not (known or holders.surplus):
        return None if not trial.is_enough() else {}
    taken: list[_Candidate] = []
    # A HyperJob with a grant of this round is not stopped in the same round.
    beyond, ordered = (
        _in_order((e for e in some if e is not head and not e.granted), demand, now=now)
        for some in (holders.surplus, known)
    )
    left = holders.left
    beyond.sort(key=lambda e: (e.unit.priority, unsaved(e, now=now) > _LITTLE, left[e.unit.key]))
    for each in _candidates(beyond, ordered, steps):
        if len(taken) == _MOST:
            break
        # The usage of the trial shrinks with each victim: a queue lends only down to its share.
        held = total(demand for _, demand in each.entry.frees)
        mine = may_preempt(head, each.entry, tree) or _is_surplus(each.entry, each.size)
        if mine or all(
            trial.usage.has_borrowed_from(name, queue, demand, held=held)
            for name in each.entry.queues
        ):
            trial.stop(each)
            taken.append(each)
    return _sizes(_fewest(taken, trial)) if trial.is_enough() else None


def _candidates(
    beyond: Sequence[Entry], ordered: Sequence[Entry], steps: Steps
) -> Iterator[_Candidate]:
    """Yield what may stop: the sub-jobs beyond what HyperJobs would like, for any that waits.

    Then come the sub-jobs that those in order can spare, then these as a whole.
    """
    for entry in beyond:
        for size, frees in steps(entry)[: entry.unit.surplus]:
            yield _Candidate(entry, frees, size)
    for entry in ordered:
        for size, frees in steps(entry)[entry.unit.surplus :]:
            yield _Candidate(entry, frees, size)
    for entry in ordered:
        yield _Candidate(entry, _rest(entry, steps(entry)))


def _rest(entry: Entry, steps: Sequence[Step]) -> Mapping[str, Resources | None]:
    """Return what a HyperJob frees that stops after it has spared all that it can."""
    found: dict[str, Resources | None] = dict.fromkeys(entry.holding)
    for _, frees in steps:
        for name, freed in frees.items():
            if freed is None or name not in found:
                found.pop(name, None)
                continue
            left = found[name]
            whole = entry.holding[name][0].request.demand if left is None else left
            found[name] = subtract(whole, freed)
    return found


def _is_surplus(entry: Entry, size: Choice) -> bool:
    """Return whether a HyperJob still has all that it would like with a smaller size."""
    return size in [each for each, _ in entry.unit.spare[: entry.unit.surplus]]


def _sizes(needed: Sequence[_Candidate]) -> Victims:
    """Return the HyperJobs to stop, each with the smallest size to which it is needed, if any."""
    found: dict[str, Choice] = {}
    steps: dict[str, int] = {}
    for each in needed:
        unit, key = each.entry.unit, each.entry.unit.key
        place = [size for size, _ in unit.spare].index(each.size) if each.size else len(unit.spare)
        if place >= steps.get(key, 0):
            found[key], steps[key] = each.size, place
    return found


def _that_lose_little(
    head: Entry,
    waiting: Pending,
    own: Sequence[Entry],
    usage: QueueUsage,
    room: Room,
    steps: Steps,
    *,
    now: datetime,
) -> Victims | None:
    """Return the fewest HyperJobs of its queue that make way for a head that has waited long.

    None: they do not give enough room. The widest come first: fewer are stopped. A HyperJob runs on
    if it has made way before, or has waited as long for its own start.
    """
    waits = now - (timestamp(head.unit.created) or now)

    def may_stop(entry: Entry) -> bool:
        unit, since = entry.unit, timestamp(entry.unit.since)
        if since is None or entry.granted or unit.again or unit.priority > head.unit.priority:
            return False
        waited = since - (timestamp(unit.created) or since)
        return waited < waits and unsaved(entry, now=now) <= waits / _PART_OF_WAIT

    able = [entry for entry in own if entry is not head and may_stop(entry)]
    floor = waiting.shape.needs.floor
    measure = accelerator_of(floor) or ""
    if sum(map(_width, able)) + room.sum.get(measure, 0) < floor.get(measure, 0):
        return None  # a trial costs a copy of all sums
    trial = _Trial(waiting, usage.copy(), room.copy())
    able = _in_order(able, floor, now=now)
    taken = list(_candidates(able, able, steps))[:_MOST]
    for each in taken:
        trial.stop(each)
    if not trial.is_enough():
        return None
    return _sizes(sorted(_fewest(taken, trial), key=lambda each: each.entry.unit.key))


def own_are_enough(waiting: Pending, holders: Holders) -> bool:
    """Return whether a head has room once those of its own queue have ended or stopped for it."""
    trial = _Trial(waiting, holders.usage.copy(), holders.room.copy())
    for entry in holders.by_queues.get(frozenset((waiting.queue,)), ()):
        if -entry.unit.priority >= waiting.order.urgency:
            trial.stop(_Candidate(entry, dict.fromkeys(entry.holding)))
    return trial.is_enough()


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


def _fewest(taken: list[_Candidate], trial: "_Trial") -> list[_Candidate]:
    """Return `taken` without those that need not stop; all are stopped before."""
    needed = []
    for each in reversed(taken):
        trial.resume(each)
        if not trial.is_enough():
            trial.stop(each)
            needed.append(each)
    return needed


def _lenders(
    queue: str, demand: Resources, holders: Holders, *, preempted: Sequence[Entry]
) -> frozenset[str]:
    """Return the queues from which `queue` may reclaim, at most after it has `preempted` its own.

    The HyperJobs of all others need no trial.
    """
    usage = holders.usage
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


class _Trial:
    """Copies of the usage and the room, as if some HyperJobs had been stopped."""

    def __init__(self, waiting: Pending, usage: QueueUsage, room: Room) -> None:
        self._waiting = waiting
        self.usage = usage
        self._room = room

    def stop(self, each: _Candidate) -> None:
        self._move(each, -1)

    def resume(self, each: _Candidate) -> None:
        self._move(each, 1)

    def is_enough(self) -> bool:
        """Return whether the HyperJob could start."""
        return _has_room(self._waiting, self.usage, self._room)

    def _move(self, each: _Candidate, sign: int) -> None:
        _move(each, self.usage, self._room, sign)


def _has_room(waiting: Pending, usage: QueueUsage, room: Room) -> bool:
    needs = waiting.shape.needs
    if not room.allows(needs.floor):
        return False
    return isinstance(try_to_admit(waiting.parts, needs, usage, room), Grant)


def _move(each: _Candidate, usage: QueueUsage, room: Room, sign: int) -> None:
    """Count what a candidate frees. The first step of a split vacates the nodes of its sub-jobs.

    All of them start again then, on any nodes: the next steps change the sums alone.
    """
    entry, namespace = each.entry, each.entry.unit.key.partition("/")[0]
    is_first = any(each.size == size for size, _ in entry.unit.spare[:1])
    for name, freed in each.frees.items():
        if name not in entry.holding:
            continue
        part, cluster = entry.holding[name]
        if freed is None:
            usage.count(part, sign)
            room.leave(cluster, f"{namespace}/{name}", part.request.demand, -sign)
            continue
        usage.add(part.queue, freed, sign)
        room.subtract(cluster, freed, sign)
        if is_first:
            room.leave(cluster, f"{namespace}/{name}", {}, -sign)


def next_change(state: QueueState, *, now: datetime) -> timedelta | None:
    """Return the time until a HyperJob may be admitted without a change of an object."""
    if not state.lines and state.grows_at is None:
        return None
    moment = may_evict_from(state, now=now)
    evictions = [moment] if moment is not None and moment > now else []
    rests = (state.entries[key].rests_until for key in state.index.resting)
    ending = state.ending[0].until if state.ending else None
    again = later(now, state.settings.forecast_every) if state.usage.remembers else None
    times = [*evictions, ending, again, state.grows_at, *rests]
    return min((max(each - now, timedelta()) for each in times if each), default=None)
