"""The state of the queue engine: the HyperJobs that hold a share or wait, and the last round.

It has the facts of API objects, and grants that no object shows yet; a new leader computes it from
the objects. The functions here change it, and after each of them these invariants hold:

- A sub-job counts in `shares.usage` and in `held` exactly while its entry has it in `holding`.
- An entry with `waiting` is in the line of that queue once. Unless the entry rests, it is also in
  the group of its shape, from which a round takes candidates.
- Pods in `ending` count in `shares.usage` too, until `end_pods` removes them.
- `index` has what a search through all entries would find.
- Others make way for a HyperJob only while it waits for its gang.

No function here does I/O or reads a clock: callers pass the time.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from sys import intern
from typing import Final
from weakref import WeakKeyDictionary

from hyperjob_core.api.duration import doubled, later
from hyperjob_engine.model.line import Chosen, Start, WaitCode
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, accumulate, total
from hyperjob_queueing.admit import Block, gang_of
from hyperjob_queueing.consumed import Consumption
from hyperjob_queueing.lines import Lines
from hyperjob_queueing.queues import BuiltinQueues, Queue
from hyperjob_queueing.sizes import PastRuns
from hyperjob_queueing.stopped import EndingPods, PodsLeft, still_ending
from hyperjob_queueing.usage import QueueUsage, Shares
from hyperjob_queueing.workload import (
    NONE,
    Entry,
    Eviction,
    Pending,
    PlacementNeeds,
    QueuedHyperJob,
    Shape,
    Shapes,
    Turn,
    in_its_choice,
)

_FIRST_REST: Final = timedelta(seconds=5)
_LONGEST_REST: Final = timedelta(minutes=5)
_RESTING: Final = Block(code=WaitCode.RESTING)


class HyperJobFault(Exception):  # noqa: N818 - the exception that it is raised from is the error
    """A bug that shows itself at one HyperJob, whose key it has; the cause is the exception.

    The state may have a part of a change. The caller sets the HyperJob aside and fills the state
    again from the objects.
    """

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


@contextmanager
def working_on(key: str) -> Iterator[None]:
    """Name the HyperJob in the exceptions of a block: the wall sets that one aside, no other."""
    try:
        yield
    except HyperJobFault:
        raise
    except Exception as error:
        raise HyperJobFault(key) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the queue engine.

    `lag` is the longest time until a Cluster's status no longer counts deleted pods. `counts`
    returns whether the free resources already exclude the vcjob of a key: they do from its creation
    on, before the next pass of its HyperJob. `names_others`: messages name HyperJobs of other
    namespaces. A round admits no more HyperJobs while `most_in_flight` admitted sub-jobs have no
    object yet. A HyperJob takes a larger size `grows_after` its last change at the earliest. One
    further behind whose place alone has changed gets a new message after `places_every`. Queues
    remember what they have consumed with `half_life`, if any.
    """

    lag: timedelta
    half_life: timedelta | None = None
    counts: Callable[[str], bool] = lambda _: False
    names_others: bool = True
    most_in_flight: float = inf
    grows_after: timedelta = timedelta(minutes=10)
    places_every: timedelta = timedelta(seconds=30)


@dataclass(slots=True)
class Index:
    """The keys of entries with one property, in the order in which they got it.

    `holders` hold a share. `missing` hold a share for a sub-job that does not exist. `resting` are
    not admitted for some time. `growing` may take a larger size. `jobs` hold a share, as
    `namespace/name`.
    """

    holders: dict[str, None] = field(default_factory=dict)
    growing: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    resting: dict[str, None] = field(default_factory=dict)
    jobs: set[str] = field(default_factory=set)


@dataclass(slots=True)
class LastRound:
    """The result of the last round.

    `open` is what the reservations of admitted sub-jobs leave; `room` also lacks what is `kept`, by
    cluster, for `kept_for`: one for which others make way, or a head that has waited long.
    `starts` are the expected starts of heads. `blocks` has why the HyperJobs of a queue and a shape
    wait.
    """

    at: datetime | None = None
    room: Room = field(default_factory=lambda: Room(()))
    open: Room = field(default_factory=lambda: Room(()))
    kept_for: str = ""
    kept: dict[str, Resources] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    blocks: dict[tuple[str, Shape], Block] = field(default_factory=dict)


@dataclass(slots=True)
class Answers:
    """Answers that hold for many rounds, by needs or shape.

    `could` and `wants` depend on `eventual`, which is what is free on each cluster after the end of
    all HyperJobs, and on the `layouts` of its nodes. `never`, whether not even empty clusters have
    room, depends on `empty`: by cluster its resources, its nodes and its trouble. `exceeds` depends
    on the queues. `empty` and the Queues have had so many `changes`.
    """

    eventual: Mapping[str, Resources] = field(default_factory=dict)
    layouts: Mapping[str, int] = field(default_factory=dict)
    could: WeakKeyDictionary[PlacementNeeds, bool] = field(default_factory=WeakKeyDictionary)
    wants: WeakKeyDictionary[PlacementNeeds, Mapping[str, Resources]] = field(
        default_factory=WeakKeyDictionary
    )
    empty: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    changes: int = 0
    never: WeakKeyDictionary[PlacementNeeds, bool] = field(default_factory=WeakKeyDictionary)
    exceeds: WeakKeyDictionary[Shape, bool] = field(default_factory=WeakKeyDictionary)


@dataclass(slots=True)
class QueueState:
    """All HyperJobs in all queues; `known`: the Queues are known, and rounds admit HyperJobs.

    `held` has the demand of all sub-jobs with a share by cluster. `ending` are pods of stopped ones
    by end, `later` starts behind heads, `past` completed runs. `grows_at`: one may grow then.
    `places_at`: all places of lines were last compared with those of their messages then.
    """

    settings: Settings
    shares: Shares
    known: bool = False
    entries: dict[str, Entry] = field(default_factory=dict)
    index: Index = field(default_factory=Index)
    lines: Lines = field(default_factory=Lines)
    held: dict[str, dict[str, int]] = field(default_factory=dict)
    ending: list[EndingPods] = field(default_factory=list)
    eviction: Eviction = field(default_factory=Eviction)
    turn: Turn = field(default_factory=Turn)
    last: LastRound = field(default_factory=LastRound)
    later: Mapping[str, Start] = field(default_factory=dict)
    forecast_at: datetime | None = None
    grows_at: datetime | None = None
    places_at: datetime | None = None
    past: PastRuns = field(default_factory=PastRuns)
    answers: Answers = field(default_factory=Answers)
    shapes: Shapes = field(default_factory=Shapes)

    @property
    def usage(self) -> QueueUsage:
        """Return what each queue uses."""
        return self.shares.usage

    @property
    def in_flight(self) -> int:
        """Return the number of admitted sub-jobs that no object shows yet."""
        return sum(len(self.entries[key].granted) for key in self.index.missing)


def new_state(
    settings: Settings, confirmer: BuiltinQueues | None = None, past: PastRuns | None = None
) -> QueueState:
    """Return a state without HyperJobs; `confirmer` chooses the queues, by default the Queues."""
    shares = Shares(confirmer or BuiltinQueues(), consumption=Consumption(settings.half_life))
    return QueueState(settings, shares, past=past or PastRuns())


def set_queues(state: QueueState, queues: Iterable[Queue]) -> None:
    """Replace all queues; before the first call the engine admits no HyperJob."""
    state.known = True
    state.shares.set_queues(queues)
    for entry in state.entries.values():
        entry.end = None  # it may come from the estimate of a Queue
    state.lines.take_back()
    state.answers.changes += 1
    _count_all(state)


def follow(state: QueueState, *, now: datetime) -> None:
    """Count the time up to now in what queues have consumed; what is kept for a head counts too."""
    # A new leader does not know yet who holds a share.
    if state.last.at is None or not state.usage.consumption.is_due(now=now):
        return
    entry = state.entries.get(state.last.kept_for)
    queue = entry.waiting.queue if entry is not None and entry.waiting is not None else ""
    state.usage.follow(queue=queue, kept=total(state.last.kept.values()), now=now)


def renew_shares(state: QueueState, clusters: Sequence[Cluster]) -> None:
    """Update the clusters' total, and the usage of queues by other workloads."""
    before = state.shares.others
    if state.shares.renew(clusters, state.index.jobs.__contains__):
        _count_all(state)
    elif before is not state.shares.others:
        queues = before.keys() | state.shares.others.keys()
        state.lines.changed.update(queue for queue in queues if state.lines.line(queue))


def update(state: QueueState, key: str, workload: QueuedHyperJob | None, *, now: datetime) -> bool:
    """Add, replace or, with None, remove a HyperJob; return whether the state changed."""
    entry = state.entries.get(key)
    if workload is None:
        if entry is None:
            return False
        _replace(state, entry, QueuedHyperJob(key=key, minimum=0, parts=()), now)
        del state.entries[key]
        return True
    workload = in_its_choice(entry, workload, state.shares.confirmer.unit)
    if entry is None:
        empty = QueuedHyperJob(key=key, minimum=0, parts=())
        entry = state.entries[key] = Entry(empty)
    elif entry.unit == workload and entry.unit.grace.keys() <= workload.grace.keys():
        entry.unit = entry.unit.renewed(workload)
        return False
    elif entry.unit.parts != workload.parts:
        entry.rests_until, entry.rests = None, 0
    if entry.unit.choice != workload.choice:
        entry.chosen = None  # the status has another one, with its own reason
    if workload.elastic:  # what starts again does so where it ran: the rest is for others
        for name in (entry.unit.made - workload.made) & workload.held:
            if cluster := entry.unit.clusters.get(name):
                entry.reserved_clusters[name] = cluster
    _replace(state, entry, workload, now)
    return True


def choose(state: QueueState, unit: QueuedHyperJob, chosen: Chosen, *, now: datetime) -> None:
    """Let sub-jobs of a HyperJob that hold nothing have other alternatives."""
    (entry := state.entries[unit.key]).chosen = chosen
    if unit.choice != entry.unit.choice:
        _replace(state, entry, unit, now)


def admit(state: QueueState, key: str, clusters: Mapping[str, str], *, now: datetime) -> None:
    """Admit sub-jobs: they hold a share of their queue and a reservation on their cluster."""
    entry = state.entries[key]
    entry.granted = entry.granted.union(clusters)
    entry.reserved_clusters |= clusters
    _replace(state, entry, entry.unit, now)


def requeue(
    state: QueueState, key: str, names: frozenset[str], *, now: datetime
) -> timedelta | None:
    """Revoke those of the named grants that are unused; return how long the HyperJob then rests.

    A resting HyperJob keeps its place in the line and is not admitted. It rests twice as long each
    time, up to `_LONGEST_REST`. None: no named grant was unused, and the next rest is a first one.
    """
    entry = state.entries.get(key)
    if entry is None:
        return None
    if not entry.granted & names:
        entry.rests = 0
        return None
    entry.granted -= names
    rest = doubled(_FIRST_REST, entry.rests, _LONGEST_REST)
    entry.rests += 1
    entry.rests_until = now + rest
    _replace(state, entry, entry.unit, now)
    return rest


def end_rests(state: QueueState, *, now: datetime) -> None:
    """Let the HyperJobs whose rest is over be admitted again."""
    for key in list(state.index.resting):
        entry = state.entries[key]
        if entry.rests_until is not None and entry.rests_until <= now:
            with working_on(key):
                entry.rests_until = None
                _replace(state, entry, entry.unit, now)


def end_pods(state: QueueState, pods_left: PodsLeft, *, now: datetime) -> None:
    """Free the shares of stopped sub-jobs that have no pod left."""
    ending, state.ending = state.ending, []
    for pods in ending:
        left = None if _exists_again(state, pods) else pods_left(pods.cluster, pods.job)
        kept = still_ending(pods, left, now=now)
        if kept is not None:
            insort(state.ending, kept, key=lambda each: each.until)
        else:
            state.usage.add_ending(pods.queue, pods.demand, -1)


def count_ending(state: QueueState, pods: EndingPods) -> None:
    """Count the pods of a stopped sub-job until their end."""
    insort(state.ending, pods, key=lambda each: each.until)
    state.usage.add_ending(pods.queue, pods.demand)


def _exists_again(state: QueueState, pods: EndingPods) -> bool:
    """Return whether pods of that name may be those of a later attempt."""
    entry = state.entries.get(pods.key)
    return entry is not None and pods.name in entry.unit.made


def admitted(state: QueueState, key: str) -> frozenset[str]:
    """Return the sub-jobs of a HyperJob that the controller may create."""
    entry = state.entries.get(key)
    return frozenset(entry.holding) if entry is not None else frozenset()


def block_of(state: QueueState, entry: Entry) -> Block | None:
    """Return why a HyperJob waits, by the last round; None before its first round."""
    if entry.rests_until is not None:
        return _RESTING
    waiting = entry.waiting
    return state.last.blocks.get((waiting.queue, waiting.shape)) if waiting is not None else None


def exceeds(state: QueueState, waiting: Pending) -> bool:
    """Return whether a gang is larger than the capabilities of its queues."""
    answers = state.answers
    known = answers.exceeds.get(waiting.shape)
    if known is None:
        needs = waiting.shape.needs
        known = len(gang_of(waiting, state.usage)) < needs.needed
        answers.exceeds[waiting.shape] = known
    return known


def _count_all(state: QueueState) -> None:
    """Add what all HyperJobs hold to a usage that is new and lacks them."""
    state.answers.exceeds.clear()
    for entry in state.entries.values():
        for part, _ in entry.holding.values():
            state.usage.count(part)
    for pods in state.ending:
        state.usage.add_ending(pods.queue, pods.demand)
    lines, others = state.lines, state.shares.others
    lines.changed.update(lines.queues(), (queue for queue in others if lines.line(queue)))


def _replace(state: QueueState, entry: Entry, workload: QueuedHyperJob, now: datetime) -> None:
    """Replace the HyperJob of an entry, and restore all invariants of the module.

    The caller has changed `granted`, `reserved_clusters` or `rests_until` before.
    """
    for name, grace in entry.unit.grace.items():
        if name not in workload.grace and name in entry.holding:
            _let_end(state, entry, name, grace, now)
    entry.take(workload)
    if entry.granted:
        open_ = {part.name for part in workload.parts} - workload.held - workload.ended
        entry.granted = entry.granted & open_ or NONE
    follow(state, now=now)
    _hold(state, entry)
    _line_up(state, entry)
    index, key = state.index, workload.key
    _mark(index.resting, key, marked=entry.rests_until is not None)
    _mark(index.growing, key, marked=bool(workload.more))
    eviction, waiting = state.eviction, entry.waiting
    victim = eviction.victims.get(key)
    if victim and (not entry.holding or (victim.size and {*victim.size} <= {*workload.choice})):
        del eviction.victims[key]
    if eviction.head == key and (waiting is None or not waiting.shape.needs.needed):
        state.eviction = Eviction()


def _let_end(state: QueueState, entry: Entry, name: str, grace: timedelta, now: datetime) -> None:
    """Count the pods of a sub-job that stops now."""
    if grace > timedelta():
        part, cluster = entry.holding[name]
        until, key = later(now, grace), entry.unit.key
        demand = state.usage.charge(part)
        count_ending(state, EndingPods(until, part.queue, demand, key, name, cluster))


def _hold(state: QueueState, entry: Entry) -> None:
    """Update what a HyperJob holds from its sub-jobs and its grants, and count the difference."""
    unit, before = entry.unit, entry.holding
    holds = (unit.held | entry.granted) - unit.ended
    entry.reserved_clusters = {
        name: cluster
        for name, cluster in entry.reserved_clusters.items()
        if name in holds and name not in unit.made
    }
    held = [part for part in unit.parts if part.name in holds]
    entry.holding = {part.name: (part, entry.cluster_of(part.name)) for part in held}
    entry.queues = frozenset(part.queue for part in held)
    _mark(state.index.holders, unit.key, marked=bool(entry.holding))
    missing = any(name not in unit.made for name in entry.holding)
    _mark(state.index.missing, unit.key, marked=missing)
    if entry.holding == before:
        return
    namespace = unit.key.partition("/")[0]
    state.index.jobs -= {f"{namespace}/{name}" for name in before}
    state.index.jobs |= {intern(f"{namespace}/{name}") for name in entry.holding}
    for sign, holding in ((-1, before), (1, entry.holding)):
        for part, cluster in holding.values():
            state.usage.count(part, sign)
            if cluster:
                accumulate(state.held.setdefault(cluster, {}), part.request.demand, sign)


def _line_up(state: QueueState, entry: Entry) -> None:
    """Put a HyperJob into the line of its queue with the sub-jobs that hold no share, if any."""
    unit, was = entry.unit, entry.waiting
    if was is not None:
        state.lines.leave(was.queue, was.shape, was.order)
        entry.waiting = None
    entry.waiting = pending_of(state, entry, unit)
    if (waiting := entry.waiting) is None:
        entry.rests_until = None
        return
    resting = entry.rests_until is not None
    state.lines.join(waiting.queue, waiting.shape, unit.order, resting=resting)


def pending_of(state: QueueState, entry: Entry, unit: QueuedHyperJob) -> Pending | None:
    """Return how a HyperJob waits with the alternatives of `unit`; None if all hold a share."""
    parts = tuple(
        part
        for part in unit.parts
        if part.name not in entry.holding and part.name not in unit.ended
    )
    if not parts:
        return None
    standing = sum(not part.grows for part, _ in entry.holding.values())
    needed = max(0, unit.minimum - standing - len(unit.ended))
    shape = state.shapes.of(unit, parts, needed=needed, promised=entry.reserved_clusters)
    return Pending(parts, shape, parts[0].queue, unit.order)


def _mark(keys: dict[str, None], key: str, *, marked: bool) -> None:
    if marked:
        keys[key] = None
    else:
        keys.pop(key, None)
