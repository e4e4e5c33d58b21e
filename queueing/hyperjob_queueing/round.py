"""One round of the queue engine: it admits, in order, every HyperJob that the rules allow.

Queues take turns by priority and by the use of their share; a line is ordered by priority and age.
A HyperJob that fits starts, also before the head of its line: a head that waits for room keeps none
free. Room is kept for a HyperJob only while others make way for it, and for one at a time that has
waited long and whose own queue holds too little for it: else small ones would pass it without end.
After such a turn all that fit start again, for nine times as long: at most a tenth of the time goes
to turns, however many heads have waited long.

A round nominates (`_nominate`: may this HyperJob start now?), admits (`_admit`), and lets others
make way for heads of lines (`_lead`, `_evict`). At the end HyperJobs that run grow into the rest.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Final

from hyperjob_core.api.duration import later
from hyperjob_engine.model.line import WaitCode
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.resources import Resources, fits, measure_of, total
from hyperjob_queueing.admit import (
    CAPACITY,
    Block,
    Grant,
    charges_of,
    closed,
    gang_of,
    is_guaranteed,
    leaves_guarantees,
    try_to_admit,
)
from hyperjob_queueing.choose import Option, Trial, best, largest, smallest_of, trials_of
from hyperjob_queueing.evict import (
    Holders,
    Search,
    evict,
    holders_of,
    is_behind,
    may_evict,
)
from hyperjob_queueing.forecast import CapacityTimeline, ends, renew_forecast
from hyperjob_queueing.grow import grow, resume
from hyperjob_queueing.reserve import begin, hold, keep, spots, waited_long, wants
from hyperjob_queueing.state import (
    HyperJobFault,
    QueueState,
    admit,
    choose,
    exceeds,
    working_on,
)
from hyperjob_queueing.stopped import PodsLeft
from hyperjob_queueing.usage import LEAD
from hyperjob_queueing.workload import (
    EARNED,
    Eviction,
    OrderInQueue,
    Pending,
    PlacementNeeds,
    QueuedHyperJob,
    Rank,
    Shape,
    Turn,
)

_BEHIND: Final = Block(code=WaitCode.BEHIND)
_BETWEEN_TURNS: Final = 9
"""How many times as long as the last turn all that fit start, before the next turn begins."""

InTurn = Callable[[str], AbstractContextManager[object]]
"""Returns the context in which a round works on the HyperJob of a key."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The HyperJobs whose pass carries out a decision of a round, and which must make way."""

    keys: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)


def schedule(
    state: QueueState,
    clusters: Sequence[Cluster],
    *,
    now: datetime,
    faulty: Callable[[Exception], None] | None = None,
    in_turn: InTurn = nullcontext,
    pods_left: PodsLeft = lambda _cluster, _job: None,
) -> Decisions:
    """Play a round with the free resources of the clusters minus the reservations.

    Equal states and clusters give equal decisions.

    The round changes `state` in place: a copy of thousands of HyperJobs costs more than the round.
    Invariant: the state has every decision that a round returns. A round that raises may leave a
    part of its sums in the state: the caller then fills a new state and plays the round again.
    `pods_left` knows the pods that members still have of stopped sub-jobs.
    `faulty` gets an exception of the forecast, on which no decision depends. `in_turn` times what
    the round does for each HyperJob.
    """
    begin(state, clusters, now=now, pods_left=pods_left)
    if not state.known:
        return Decisions()
    decisions = _Round(state, now, in_turn).play()
    try:
        renew_forecast(state, now=now)
    except Exception as error:
        if faulty is None:
            raise
        state.later = {}
        faulty(error)
    return decisions


@dataclass(slots=True)
class _Round:
    """The working memory of one round.

    A shape without room stays so, because room and quota only shrink during a round: `blocks`,
    `closed` and `failed` have each answer once for all HyperJobs of the shape. `led` are the queues
    whose head, the first HyperJob that may ever start, waits. `timeline` and `holders` are valid
    until the next grant. `surplus`: some HyperJob has more than it would like.
    """

    state: QueueState
    now: datetime
    in_turn: InTurn
    blocks: dict[tuple[str, Shape], Block] = field(default_factory=dict)
    closed: dict[tuple[str, ...], Block | None] = field(default_factory=dict)
    failed: set[PlacementNeeds] = field(default_factory=set)
    led: set[str] = field(default_factory=set)
    admitted: dict[str, None] = field(default_factory=dict)
    evicted: dict[str, None] = field(default_factory=dict)
    timeline: CapacityTimeline | None = None
    holders: Holders | None = None
    surplus: bool = False

    def play(self) -> Decisions:
        """Admit HyperJobs until no other one can start, or enough sub-jobs wait for creation.

        Later rounds, after the objects of this one exist, admit the others. A queue leaves `ahead`
        when none of its HyperJobs can start in this round: room and quota only shrink.
        """
        state, most = self.state, self.state.settings.most_in_flight
        self.surplus = any(state.entries[key].unit.surplus for key in state.index.holders)
        self.surplus |= state.eviction.rank is Rank.BEHIND
        resume(state, now=self.now)
        self._resume_eviction()
        self._resume_turn()
        self._favour()
        # Candidates by queue, as heaps: the first HyperJob of every shape that has no block yet.
        # Behind it in its shape no other one can start first.
        ahead = {queue: state.lines.firsts(queue) for queue in state.lines.queues()}
        while ahead and state.in_flight < most:
            asking = {each: self._demand_of_next(firsts) for each, firsts in ahead.items()}
            for queue in state.usage.turns(asking):
                if self._advance(queue, ahead[queue]):
                    break  # the usage has changed, and with it the order of the queues
                del ahead[queue]
        self._record(is_whole=not ahead)
        grown = [] if ahead else grow(state, self.blocks, now=self.now)
        return Decisions([*self.admitted, *self.evicted, *grown], [*self.evicted])

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
        entry = self.state.entries.get(key := self.state.eviction.head)
        if entry is None or entry.waiting is None or entry.rests_until:
            return
        with working_on(key), self.in_turn(key):
            if not self._consider(entry.waiting, []) and self.state.last.kept_for != key:
                self.state.eviction = Eviction()  # its queue was closed, or its cluster was lost

    def _resume_turn(self) -> None:
        """Go on with the head for which room is kept, and end its turn once it needs no more.

        A more urgent HyperJob in its line ends the turn too.
        """
        state, turn = self.state, self.state.turn
        if not turn.head or state.last.kept_for not in ("", turn.head):
            return
        entry = state.entries.get(turn.head)
        if turn.earned and turn.began and self.now >= turn.began + EARNED:
            state.turn = replace(turn, head="", following=later(self.now, _BETWEEN_TURNS * EARNED))
            return
        waiting = entry.waiting if entry is not None and not entry.rests_until else None
        if waiting is not None and (waiting.queue, waiting.shape) not in self.blocks:
            first = state.lines.line(waiting.queue)[:1]
            if first and first[0].urgency == waiting.order.urgency:
                with working_on(turn.head), self.in_turn(turn.head):
                    self._consider(waiting, [])
        if state.last.kept_for != turn.head:
            took = self.now - (turn.began or self.now)
            state.turn = replace(turn, head="", following=later(self.now, _BETWEEN_TURNS * took))

    def _favour(self) -> None:
        """Let a queue in its turn come first until it has consumed more than the others."""
        turn, usage = self.state.turn, self.state.usage
        if turn.queue and not usage.is_behind(turn.queue, turn.measure, lead=-LEAD):
            turn.queue = ""
        usage.in_turn = usage.tree.path(turn.queue)[1:]

    def _demand_of_next(self, firsts: list[OrderInQueue]) -> Resources:
        """Return the demand of the first HyperJob of a line."""
        waiting = self.state.entries[firsts[0].key].waiting if firsts else None
        return waiting.shape.needs.floor if waiting is not None else {}

    def _advance(self, queue: str, firsts: list[OrderInQueue]) -> bool:
        """Try the HyperJobs of a line up to the first grant; return whether more may follow."""
        known = self.state.usage.tree.queues.get(queue)
        is_fifo = known is not None and known.fifo
        while firsts:
            order = heapq.heappop(firsts)
            waiting = self.state.entries[order.key].waiting
            # `_resume_eviction` may have admitted the HyperJob or blocked its shape before, and
            # `_admit` may have pushed the first of a shape twice.
            if waiting is None or waiting.order != order or (queue, waiting.shape) in self.blocks:
                continue
            try:  # `working_on` for each of thousands of shapes would slow a round
                with self.in_turn(order.key):
                    if self._consider(waiting, firsts):
                        return True
            except HyperJobFault:
                raise
            except Exception as error:
                raise HyperJobFault(order.key) from error
            if is_fifo and (queue in self.led or not waiting.shape.needs.needed):
                self._block_all(queue, firsts)
                return False
        return False

    def _consider(self, waiting: Pending, firsts: list[OrderInQueue]) -> bool:
        """Admit a HyperJob, or let it lead its line if no other one does."""
        if waiting.shape.chooses:
            waiting = self._choose(waiting, firsts)
        verdict = self._nominate(waiting)
        if isinstance(verdict, Grant):
            self._admit(waiting, verdict, firsts)
            return True
        self.blocks[waiting.queue, waiting.shape] = verdict
        if not waiting.shape.needs.needed or verdict.code is WaitCode.NOT_OPEN:
            return False
        if waiting.queue not in self.led and not is_behind(self.state, waiting.order.key):
            self._lead(waiting, verdict)
        elif self.surplus:
            self._take_surplus(waiting)
        return False

    def _choose(self, waiting: Pending, firsts: list[OrderInQueue]) -> Pending:
        """Let what waits of a HyperJob wait with the best of its alternatives or sizes."""
        state, key, queue = self.state, waiting.order.key, waiting.queue
        if not (found := trials_of(state, state.entries[key])):
            return waiting  # it may have no other
        of_shapes = [[*each] for _, each in groupby(found, lambda each: each[0].shape)]
        sized = [
            largest(each, self._has_room, smallest_of(each)) if each[0][0].elastic else None
            for each in of_shapes
        ]
        trials = [each[size[0] if size else 0] for each, size in zip(of_shapes, sized, strict=True)]
        if len(trials) == 1 and sized[0] is not None:
            place, why = 0, sized[0][1]
        else:
            place, why = best([self._option(*each) for each in trials])
        unit, trial = trials[place]
        choose(state, unit, why, now=self.now)
        # Those of the shape that it leaves are candidates too: they choose as it does.
        if trial.shape is not waiting.shape:
            following = state.lines.first(queue, waiting.shape)
            if following is not None:
                heapq.heappush(firsts, following)
        return trial

    def _has_room(self, each: Trial) -> bool:
        return isinstance(self._nominate(each[1]), Grant)

    def _option(self, unit: QueuedHyperJob, trial: Pending) -> Option:
        """Return what this round knows of a HyperJob with other alternatives."""
        room = isinstance(self._nominate(trial), Grant)
        starts = self.now if room else None
        possible = room or self._will_go(trial)
        if possible and not room and unit.remaining is not None:
            start = self._timeline().earliest(trial)
            starts = start.at if start is not None and not start.overdue else None
        return Option(room=room, possible=possible, starts=starts, remaining=unit.remaining)

    def _timeline(self) -> CapacityTimeline:
        """Return what becomes free, by the expected ends of those that hold a share."""
        if self.timeline is None:
            self.timeline = CapacityTimeline(self.state.last.open, ends(self.state, now=self.now))
        return self.timeline

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
        if (block := self.closed[shape.queues]) is not None:
            able = [part for part in waiting.parts if usage.tree.trouble(part.queue) is None]
            if len(able) < max(1, shape.needs.needed):
                return block
            found = try_to_admit(able, shape.needs, usage, room)
            return found if isinstance(found, Grant) else block
        if usage.tree.guaranteed and is_guaranteed(waiting.parts, usage):
            # A guarantee precedes what is kept for a head: the room is `open`, which has that.
            return try_to_admit(waiting.parts, shape.needs, usage, self.state.last.open)
        if exceeds(self.state, waiting) and fits(
            shape.needs.floor, total(self.state.answers.eventual.values())
        ):
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
        state, key, floor = self.state, waiting.order.key, waiting.shape.needs.floor
        for part in waiting.parts:
            if cluster := grant.clusters.get(part.name):
                hold(state.last, part.request, cluster)
        if not state.turn.queue and state.usage.has_earned(waiting.queue, floor):
            state.turn = replace(state.turn, queue=waiting.queue, measure=measure_of(floor))
        admit(state, key, grant.clusters, now=self.now)
        self.timeline = self.holders = None
        self.admitted[key] = None
        left, shapes = state.entries[key].waiting, [waiting.shape]
        if left is not None and left.queue == waiting.queue:
            shapes.append(left.shape)
        for shape in shapes:
            order = state.lines.first(waiting.queue, shape)
            if order is not None:
                heapq.heappush(firsts, order)

    def _will_go(self, waiting: Pending) -> bool:
        """Return whether a gang has room, beside all guarantees, after the end of all HyperJobs."""
        needs, last, answers = waiting.shape.needs, self.state.last, self.state.answers
        if exceeds(self.state, waiting):
            return False
        could = answers.could.get(needs)
        if could is None:
            empty = last.room.emptied(Vacating.OF_JOBS, answers.eventual)
            could = answers.could[needs] = len(spots(waiting, empty, least=0)) >= needs.needed
        gang = gang_of(waiting, self.state.usage)
        return could and leaves_guarantees(gang, self.state.shares, answers.eventual.values())

    def _lead(self, waiting: Pending, block: Block) -> None:
        """Let the first of a line that can ever start be its head, whose queue is then in `led`.

        Room is kept for a head only while others make way for it or in its turn, quota while others
        make way for it or it waits for quota. Both come after its own trial: it must not be refused
        for what is its own.
        """
        if not self._will_go(waiting):
            return
        self.led.add(waiting.queue)
        if self._evict(waiting, Rank.HEAD):
            return
        if block.code is WaitCode.CAPACITY:
            start = self._timeline().earliest(waiting)
            if start is not None and start.after:
                self.state.last.starts[waiting.order.key] = start
            self._take_turn(waiting)
        elif block.code is WaitCode.LIMIT:
            self._claim(waiting)

    def _take_surplus(self, waiting: Pending) -> None:
        """Let what others have beyond their wishes make way for a HyperJob behind its head."""
        state = self.state
        may = not state.last.kept_for and may_evict(state, now=self.now)
        if is_behind(state, waiting.order.key) or (may and self._held().would_start(waiting)):
            self._evict(waiting, Rank.BEHIND)

    def _claim(self, waiting: Pending) -> None:
        """Keep the quota that a gang needs for the rest of the round."""
        usage = self.state.usage
        for name, asked in charges_of(gang_of(waiting, usage), usage).items():
            usage.claim(name, asked)

    def _take_turn(self, waiting: Pending) -> None:
        """Keep room for a head that has waited longest, unless it is the turn of another one.

        A head larger than the share of its queue has one by that, once and for `EARNED` at most.
        """
        state, key, turn = self.state, waiting.order.key, self.state.turn
        rests = turn.following is not None and self.now < turn.following
        if not turn.head and not rests:
            floor, queue, entry = waiting.shape.needs.floor, waiting.queue, state.entries[key]
            earned = not entry.had_turn and state.usage.has_earned(queue, floor, keeping=True)
            late = not earned and self._has_waited_long(waiting, longest=True)
            if earned or (late and not self._held().own_are_enough(waiting)):
                entry.had_turn |= earned
                measure = measure_of(floor) if state.usage.exceeds_share(queue, floor) else ""
                turn = state.turn = Turn(key, earned, queue if measure else "", measure, self.now)
        if turn.head == key and not state.last.kept_for:
            self._keep(waiting, most=waiting.shape.needs.floor)

    def _held(self) -> Holders:
        self.holders = self.holders or holders_of(self.state)
        return self.holders

    def _has_waited_long(self, waiting: Pending, *, longest: bool = False) -> bool:
        """Return whether a head has waited for the patience of its queue, times a factor."""
        queue = self.state.usage.tree.queues.get(waiting.queue)
        if queue is None or queue.patience is None:
            return False
        free, wanted = self.state.last.open.free, self._wants(waiting)
        return waited_long(waiting, wanted, free, queue.patience, now=self.now, longest=longest)

    def _keep(self, waiting: Pending, *, most: Resources | None = None) -> None:
        """Keep for a head what it could use of each cluster, at most `most` of all together."""
        last = self.state.last
        for name, taken in keep(last.room, self._wants(waiting), most=most).items():
            last.kept[name] = total((last.kept.get(name, {}), taken))
        last.kept_for = waiting.order.key

    def _wants(self, waiting: Pending) -> Mapping[str, Resources]:
        """Return the resources that a head could use, by cluster."""
        needs, answers = waiting.shape.needs, self.state.answers
        found = answers.wants.get(needs)
        if found is None:
            most, limit = needs.needed, needs.max_domains
            room, requests = self.state.last.room, waiting.requests
            found = answers.wants[needs] = wants(
                room, answers.eventual, requests, most=most, max_domains=limit
            )
        return found

    def _evict(self, waiting: Pending, rank: Rank) -> bool:
        """Let others make way for a HyperJob, unless they do for another one; keep what it needs.

        Return whether room becomes free for it: HyperJobs make way, or pods are about to end whose
        room is enough for a HyperJob that else would stop others.
        """
        state, key = self.state, waiting.order.key
        kept_for, makes_way = state.last.kept_for, state.eviction.head == key
        if may_evict(state, now=self.now) and kept_for in ("", key, state.turn.head):
            find = partial(Search, state, waiting, self._held(), self.now)
            victims = find(rank).victims()
            if victims is None and rank is Rank.HEAD and self._has_waited_long(waiting):
                victims, rank = find(Rank.LATE).victims(), Rank.LATE
            makes_way = bool(victims)
            if victims:
                evict(state, key, victims, now=self.now, rank=rank)
                self.evicted |= dict.fromkeys(victims)
            elif victims is not None:  # else the room is kept for the head that has its turn
                makes_way = kept_for in ("", key)
            elif state.eviction.head == key:
                state.eviction = Eviction()  # no choice of victims gives it enough room any more
        if makes_way:
            self._keep(waiting)
            self._claim(waiting)
        return makes_way
