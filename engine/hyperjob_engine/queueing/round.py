"""One round of the queue engine: it admits, in order, every HyperJob that the rules allow.

Queues take turns by priority and by the use of their share; a line is ordered by priority and age.
For the first HyperJob of a line without room the engine reserves the free resources that it could
use: those behind it use only what is left, and cannot delay it.

A round nominates (`_nominate`: may this HyperJob start now?), admits (`_admit`), reserves for heads
(`_reserve`), evicts for them (`_evict`), and last backfills their reserved room (`_backfill`).
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.queueing.admit import (
    CAPACITY,
    Block,
    Grant,
    closed,
    demands_of,
    gang_of,
    is_guaranteed,
    leaves_guarantees,
    try_to_admit,
)
from hyperjob_engine.queueing.evict import doubts_until, evict, may_evict_from, victims_for
from hyperjob_engine.queueing.forecast import (
    CapacityTimeline,
    end_of,
    ends,
    ends_by,
    renew_forecast,
)
from hyperjob_engine.queueing.reserve import reserve
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.state import (
    HyperJobFault,
    LastRound,
    QueueState,
    admit,
    end_pods,
    end_rests,
    exceeds,
    renew_shares,
    working_on,
)
from hyperjob_engine.queueing.stopped import PodsLeft
from hyperjob_engine.queueing.workload import (
    OrderInQueue,
    Pending,
    PlacementNeeds,
    QueuedSubJob,
    Shape,
)
from hyperjob_engine.reasons.waiting import Start, WaitCode
from hyperjob_engine.resources import Resources, fits, total

_BEHIND: Final = Block(code=WaitCode.BEHIND)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The HyperJobs that a round admits and those that must make way, in the order of decision."""

    admitted: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str]:
        """Return the HyperJobs whose pass carries out a decision."""
        return [*self.admitted, *self.evicted]


def schedule(
    state: QueueState,
    clusters: Sequence[Cluster],
    *,
    shown: Mapping[str, Resources] | None = None,
    now: datetime,
    faulty: Callable[[Exception], None] | None = None,
    pods_left: PodsLeft = lambda _cluster, _job: None,
) -> Decisions:
    """Play a round with the free resources of the clusters minus the reservations.

    `shown` are the free resources of each Cluster without the reservations subtracted. Equal
    states and clusters give equal decisions.

    The round changes `state` in place: a copy of thousands of HyperJobs costs more than the round.
    Invariant: the state has every decision that a round returns. A round that raises may leave a
    part of its sums in the state: the caller then fills a new state and plays the round again.
    `pods_left` knows the pods that members still have of stopped sub-jobs.
    `faulty` gets an exception of the forecast, on which no decision depends.
    """
    begin(state, clusters, shown=shown, now=now, pods_left=pods_left)
    if not state.known:
        return Decisions()
    decisions = _Round(state, now).play()
    try:
        renew_forecast(state, now=now)
    except Exception as error:
        if faulty is None:
            raise
        state.later = {}
        faulty(error)
    return decisions


def next_change(state: QueueState, *, now: datetime) -> timedelta | None:
    """Return the time until a HyperJob may be admitted without a change of an object."""
    if not state.lines:
        return None
    evictions = [
        each
        for each in (may_evict_from(state), *(doubts_until(state) or ()))
        if each and each > now
    ]
    rests = (state.entries[key].rests_until for key in state.index.resting)
    ending = state.ending[0].until if state.ending else None
    passed = [state.entries[key] for key in state.index.holders if state.entries[key].passed]
    overruns = [end_of(entry.unit.key, entry, state.usage.tree, now=now) for entry in passed]
    overrun = min((end.at for end in overruns if end is not None and end.at > now), default=None)
    times = [state.occupancy.next_change(), *evictions, ending, overrun, *rests]
    return min((max(each - now, timedelta()) for each in times if each), default=None)


def begin(
    state: QueueState,
    clusters: Sequence[Cluster],
    *,
    shown: Mapping[str, Resources] | None = None,
    now: datetime,
    pods_left: PodsLeft = lambda _cluster, _job: None,
) -> None:
    """Let the state follow the time and the clusters; the blocks of the last round stay.

    The order matters: ends of rests and pods change lines and usage, which new shares count. Then
    `reserve` takes the room of sub-jobs that are admitted and not created yet. Of the two rooms
    that it leaves equal, `room` also loses the reservations of heads during the round.
    """
    state.began = state.began or now
    end_rests(state, now=now)
    end_pods(state, pods_left, now=now)
    renew_shares(state, clusters)
    state.usage.forget_claims()
    usable = [cluster for cluster in clusters if cluster.usable]
    eventual = state.occupancy.eventual(usable, shown or {}, now=now)
    layouts = {each.name: each.view.layout for each in usable if each.view is not None}
    if (eventual, layouts) != state.answers.basis:
        state.answers.basis = eventual, layouts
        state.answers.could.clear()
        state.answers.wants.clear()
    room = Space(clusters, eventual)
    reserve(state, room)
    state.messages.numbers |= state.last.open.sum != room.sum
    state.last = LastRound(at=now, room=room, open=room.copy(), blocks=state.last.blocks)


@dataclass(slots=True)
class _Round:
    """The working memory of one round.

    A shape without room stays so, because room and quota only shrink during a round: `blocks`,
    `closed` and `failed` have each answer once for all HyperJobs of the shape. `led` are the queues
    whose head has a reservation. `timeline` is valid until the next grant.
    """

    state: QueueState
    now: datetime
    blocks: dict[tuple[str, Shape], Block] = field(default_factory=dict)
    closed: dict[tuple[str, ...], Block | None] = field(default_factory=dict)
    failed: set[PlacementNeeds] = field(default_factory=set)
    led: set[str] = field(default_factory=set)
    admitted: dict[str, None] = field(default_factory=dict)
    evicted: dict[str, None] = field(default_factory=dict)
    timeline: CapacityTimeline | None = None
    starts: dict[str, Start | None] = field(default_factory=dict)

    def play(self) -> Decisions:
        """Admit HyperJobs until no other one can start, or enough sub-jobs wait for creation.

        Later rounds, after the objects of this one exist, admit the others. A queue leaves `ahead`
        when none of its HyperJobs can start in this round: room and quota only shrink.
        """
        state, most = self.state, self.state.settings.most_in_flight
        self._resume_eviction()
        # Candidates by queue, as heaps: the first HyperJob of every shape that has no block yet.
        # Behind it in its shape no other one can start first.
        ahead = {queue: state.lines.firsts(queue) for queue in state.lines.queues()}
        while ahead and state.in_flight < most:
            asking = {each: self._demand_of_next(firsts) for each, firsts in ahead.items()}
            for queue in state.usage.turns(asking):
                if self._advance(queue, ahead[queue]):
                    break  # the usage has changed, and with it the order of the queues
                del ahead[queue]
        self._backfill()
        self._record(is_whole=not ahead)
        return Decisions(tuple(self.admitted), tuple(self.evicted))

    def _record(self, *, is_whole: bool) -> None:
        """Record why HyperJobs wait; the blocks of lines that a round did not finish stay."""
        state = self.state
        for (queue, shape), block in self.blocks.items():
            before = state.last.blocks.get((queue, shape))
            if before is None or before.code is not block.code:
                state.lines.changed.add(queue)
        state.last.blocks = self.blocks if is_whole else {**state.last.blocks, **self.blocks}

    def _resume_eviction(self) -> None:
        """Begin with the head of the present eviction: what becomes free is for that HyperJob."""
        known = self.state.eviction
        entry = self.state.entries[known.head] if known is not None else None
        if known is None or entry is None or entry.waiting is None or entry.rests_until:
            return
        waiting = entry.waiting
        with working_on(known.head):
            if not self._consider(waiting, []) and waiting.queue not in self.led:
                self.state.eviction = None  # its queue was closed, or its cluster was lost

    def _demand_of_next(self, firsts: list[OrderInQueue]) -> Resources:
        """Return the demand of the first HyperJob of a line."""
        waiting = self.state.entries[firsts[0].key].waiting if firsts else None
        return waiting.shape.needs.floor if waiting is not None else {}

    def _advance(self, queue: str, firsts: list[OrderInQueue]) -> bool:
        """Try the HyperJobs of a line up to the first grant; return whether more may follow."""
        while firsts:
            order = heapq.heappop(firsts)
            waiting = self.state.entries[order.key].waiting
            # `_resume_eviction` may have admitted the HyperJob or blocked its shape before, and
            # `_admit` may have pushed the first of a shape twice.
            if waiting is None or waiting.order != order or (queue, waiting.shape) in self.blocks:
                continue
            try:  # a context manager for each of thousands of shapes would slow a round
                if self._consider(waiting, firsts):
                    return True
            except HyperJobFault:
                raise
            except Exception as error:
                raise HyperJobFault(order.key) from error
            if self._is_fifo(queue) and (queue in self.led or not waiting.shape.needs.needed):
                self._block_all(queue, firsts)
                return False
        return False

    def _consider(self, waiting: Pending, firsts: list[OrderInQueue]) -> bool:
        """Admit a HyperJob, or reserve room for it if it is the first without room in its line."""
        verdict = self._nominate(waiting)
        if isinstance(verdict, Grant):
            self._admit(waiting, verdict, firsts)
            return True
        self.blocks[waiting.queue, waiting.shape] = verdict
        if waiting.queue not in self.led:
            self._reserve(waiting, verdict)
        return False

    def _block_all(self, queue: str, firsts: list[OrderInQueue]) -> None:
        """Block every shape behind the head of a Queue with `dequeueStrategy: fifo`."""
        for order in firsts:
            waiting = self.state.entries[order.key].waiting
            if waiting is not None:
                self.blocks.setdefault((queue, waiting.shape), _BEHIND)

    def _nominate(self, waiting: Pending) -> Grant | Block:
        """Return clusters for a HyperJob that may start now, or why it may not."""
        shape, room, usage = waiting.shape, self.state.last.room, self.state.usage
        if shape.queues not in self.closed:
            self.closed[shape.queues] = closed(shape.queues, usage)
        block = self.closed[shape.queues]
        if block is not None:
            able = [part for part in waiting.parts if usage.tree.trouble(part.queue) is None]
            if len(able) < max(1, shape.needs.needed):
                return block
            found = try_to_admit(able, shape.needs, usage, room)
            return found if isinstance(found, Grant) else block
        if usage.tree.guaranteed and is_guaranteed(waiting.parts, usage):
            # A guarantee precedes the reservations of heads: the room is `open`, without them.
            return try_to_admit(waiting.parts, shape.needs, usage, self.state.last.open)
        if exceeds(self.state, waiting) and fits(shape.needs.floor, room.most):
            # The block is then the limit, whether there is room now or not.
            return try_to_admit(waiting.parts, shape.needs, usage, room)
        if shape.needs in self.failed:
            return CAPACITY
        if not room.allows(shape.needs.floor):
            self.failed.add(shape.needs)
            return CAPACITY
        verdict = try_to_admit(waiting.parts, shape.needs, usage, room)
        if verdict is CAPACITY:
            self.failed.add(shape.needs)
        return verdict

    def _admit(self, waiting: Pending, grant: Grant, firsts: list[OrderInQueue]) -> None:
        """Carry a grant out in the state, and push the next candidates onto the heap `firsts`.

        The order matters. The puts come first: `admit` replaces `waiting` by what is left to wait.
        Then the HyperJob has left the group of its shape, whose next one becomes a candidate. What
        is left of it may be in another group, as the first there; pushed twice is harmless.
        """
        state, key = self.state, waiting.order.key
        for part in waiting.parts:
            if cluster := grant.clusters.get(part.name):
                state.last.room.put(part.request, cluster)
                state.last.open.put(part.request, cluster)
        admit(state, key, grant.clusters, now=self.now)
        self.timeline = None
        self.admitted[key] = None
        left, shapes = state.entries[key].waiting, [waiting.shape]
        if left is not None and left.queue == waiting.queue:
            shapes.append(left.shape)
        for shape in shapes:
            order = state.lines.first(waiting.queue, shape)
            if order is not None:
                heapq.heappush(firsts, order)

    def _will_go(self, gang: Sequence[QueuedSubJob], waiting: Pending) -> bool:
        """Return whether a gang has room, beside all guarantees, after the end of all HyperJobs."""
        needs, room, answers = waiting.shape.needs, self.state.last.room, self.state.answers
        if exceeds(self.state, waiting):
            return False
        could = answers.could.get(needs)
        if could is None:
            requests = [part.request for part in waiting.parts]
            found = room.could(requests, needs.standing, needs.max_domains)
            could = answers.could[needs] = found >= needs.needed
        return could and leaves_guarantees(gang, self.state.shares, room.most)

    def _reserve(self, waiting: Pending, block: Block) -> None:
        """Reserve room for the first of a line if it can ever start; it is then in `led`.

        An eviction for the head and its expected start come after the reservation, because both
        ask which heads have one. The claim under the capabilities comes last: the head itself must
        not be refused for its own claim.
        """
        queue, needs, usage = waiting.queue, waiting.shape.needs, self.state.usage
        key, last = waiting.order.key, self.state.last
        if not needs.needed or block.code is WaitCode.NOT_OPEN:
            return
        gang = gang_of(waiting.parts, needs, usage)
        if not self._will_go(gang, waiting):
            return
        if block.code is WaitCode.GUARANTEE:
            demand = total(part.request.demand for part in gang)
            usage.reserve_for_head(demand, last.room.sum)
        elif block.code is not WaitCode.LIMIT:
            last.room.keep(self._wants(waiting))
            last.heads[queue] = key
        self.led.add(queue)
        self._evict(waiting, gang)
        if last.heads.get(queue) == key:
            self._expect(waiting)
        for name, asked in demands_of(gang).items():
            usage.claim(name, asked)

    def _wants(self, waiting: Pending) -> Mapping[str, Resources]:
        """Return the resources that a head could use, by cluster."""
        needs, wants = waiting.shape.needs, self.state.answers.wants
        found = wants.get(needs)
        if found is None:
            requests = [part.request for part in waiting.parts]
            found = wants[needs] = self.state.last.room.wants(
                requests, most=needs.needed, max_domains=needs.max_domains
            )
        return found

    def _expect(self, waiting: Pending) -> None:
        """Compute the expected start of a head; until then others may use its reserved room."""
        state, key, known, start = self.state, waiting.order.key, self.state.eviction, None
        if known is None or known.head != key:  # an eviction frees the room sooner
            if self.timeline is None:
                self.timeline = CapacityTimeline(state.last.open, ends(state, now=self.now))
            start = self.timeline.earliest(waiting)
        if start is not None and start.after:
            state.last.starts[key] = start
        self.starts[waiting.queue] = start

    def _evict(self, waiting: Pending, gang: Sequence[QueuedSubJob]) -> None:
        """Start a reclaim or a preemption for a head, unless another head is before it."""
        state, key = self.state, waiting.order.key
        moment = may_evict_from(state)
        if moment is None or moment > self.now:
            return
        if any(head != key for head in state.last.heads.values()):
            return
        victims, unsure = victims_for(state, waiting, gang, now=self.now)
        known = state.eviction
        if unsure is not None:
            state.last.unsure[key] = unsure
        if victims:
            evict(state, key, victims, now=self.now)
            self.evicted |= dict.fromkeys(victims)
        elif victims is None and known is not None and known.head == key:
            state.eviction = None  # no choice of victims gives it enough room any more

    def _backfill(self) -> None:
        """Admit HyperJobs that end, by their estimates, before the heads can use their room."""
        state = self.state
        known = {q: each for q, each in self.starts.items() if each and not each.overdue}
        if not known:
            return
        until = min(each.at for each in known.values())
        spare = self._spare(self.starts.keys() - known.keys())
        failed: set[PlacementNeeds] = set()  # the spare room only shrinks
        ahead = {queue: self._fillers(queue, until, spare) for queue in state.lines.queues()}
        while ahead := {queue: orders for queue, orders in ahead.items() if orders}:
            asking = {each: self._demand_of_next(orders) for each, orders in ahead.items()}
            queue = next(state.usage.turns(asking))
            key = heapq.heappop(ahead[queue]).key
            waiting = state.entries[key].waiting
            if waiting is None or waiting.shape.needs in failed:
                continue
            with working_on(key):
                if self._fill(waiting, spare) is CAPACITY:
                    failed.add(waiting.shape.needs)

    def _fill(self, waiting: Pending, spare: Space) -> Grant | Block:
        """Admit a HyperJob into the spare room, if the room and its queues allow it."""
        needs = waiting.shape.needs
        if not spare.allows(needs.floor):
            return CAPACITY
        found = try_to_admit(waiting.parts, needs, self.state.usage, spare)
        if isinstance(found, Grant):
            for part in waiting.parts:
                if cluster := found.clusters.get(part.name):
                    spare.put(part.request, cluster)
            self._admit(waiting, found, [])
            entries = self.state.entries
            heads = {entries[head].unit.uid for head in self.state.last.heads.values()}
            entries[waiting.order.key].passed |= heads
        return found

    def _spare(self, queues: Iterable[str]) -> Space:
        """Return the free room without the reservations of the heads with an unknown start.

        `answers.wants` has the room of each head: `_reserve` has computed it in this round.
        """
        state = self.state
        spare = state.last.open.copy()
        for queue in sorted(queues):
            head = state.entries[state.last.heads[queue]].waiting
            if head is not None:
                spare.keep(state.answers.wants[head.shape.needs])
        return spare

    def _fillers(self, queue: str, until: datetime, spare: Space) -> list[OrderInQueue]:
        """Return the HyperJobs of a line that may backfill: they end before `until`, by estimates.

        They have no room beside the reservations, and may have some in the spare room; in order,
        which is also the order of a heap.
        """
        state, heads = self.state, set(self.state.last.heads.values())
        if self._is_fifo(queue):
            return []
        return sorted(
            order
            for shape, orders in state.lines.shapes(queue)
            if self.blocks.get((queue, shape)) is CAPACITY and spare.allows(shape.needs.floor)
            for order in orders
            if order.key not in heads and ends_by(state, order.key, until, now=self.now)
        )

    def _is_fifo(self, queue: str) -> bool:
        known = self.state.usage.tree.queues.get(queue)
        return known is not None and known.fifo
