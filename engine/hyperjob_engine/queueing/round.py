"""One round of the queue engine: it admits, in order, every HyperJob that the rules allow.

Queues take turns by priority and by the use of their share; a line is ordered by priority and age.
For the first HyperJob of a line without room the engine reserves the free resources that it could
use: those behind it use only what is left, and cannot delay it.
"""

import heapq
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from hyperjob_engine.queueing.admit import (
    CAPACITY,
    Block,
    Grant,
    closed,
    gang_of,
    is_guaranteed,
    leaves_guarantees,
    try_to_admit,
)
from hyperjob_engine.queueing.backfill import CapacityTimeline
from hyperjob_engine.queueing.cache import QueueCache
from hyperjob_engine.queueing.entries import Pending
from hyperjob_engine.queueing.forecast import forecasts
from hyperjob_engine.queueing.reclaim import borrowers_for
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.shapes import PlacementNeeds, Shape
from hyperjob_engine.queueing.units import OrderInQueue, QueuedSubJob
from hyperjob_engine.reasons.waiting import Start, WaitCode
from hyperjob_engine.resources import Resources, fits, total

_BEHIND: Final = Block(code=WaitCode.BEHIND)


def play(cache: QueueCache, *, now: datetime) -> list[str]:
    """Play a round; return the HyperJobs that it admits and those that must make way."""
    return _Round(cache, now).play() if cache.known else []


class _Round:
    """The state of one round; a shape without room stays so, because the room only shrinks."""

    def __init__(self, cache: QueueCache, now: datetime) -> None:
        self._cache = cache
        self._account = cache.account
        self._now = now
        self._blocks: dict[tuple[str, Shape], Block] = {}
        self._closed: dict[tuple[str, ...], Block | None] = {}
        self._failed: set[PlacementNeeds] = set()
        self._led: set[str] = set()
        self._granted: dict[str, None] = {}
        self._asked: dict[str, None] = {}
        self._outlook: CapacityTimeline | None = None  # valid until the next grant
        self._starts: dict[str, Start | None] = {}  # the expected starts of heads, by queue

    def play(self) -> list[str]:
        """Admit HyperJobs until no other one can start, or enough sub-jobs wait for creation.

        Later rounds, after the objects of this one exist, admit the others.
        """
        cache = self._cache
        self._resume()
        ahead = {queue: cache.lines.firsts(queue) for queue in cache.lines.queues()}
        while ahead and cache.in_flight < cache.most_in_flight:
            queue = self._account.next_queue(
                {each: self._next(firsts) for each, firsts in ahead.items()}
            )
            if not self._advance(queue, ahead[queue]):
                del ahead[queue]
        self._backfill()
        for (queue, shape), block in self._blocks.items():
            before = cache.blocks.get((queue, shape))
            if before is None or before.code is not block.code:
                cache.lines.changed.add(queue)
        cache.blocks = {**cache.blocks, **self._blocks} if ahead else self._blocks
        if cache.starts and cache.wants_forecasts(now=self._now):
            cache.later = forecasts(cache, now=self._now)
        return [*self._granted, *self._asked]

    def _resume(self) -> None:
        """Begin with the head of the present reclaim: the resources that become free are for it."""
        known = self._cache.reclaiming()
        entry = self._cache.entries[known.head] if known is not None else None
        if known is None or entry is None or entry.waiting is None or entry.rests_until:
            return
        waiting = entry.waiting
        verdict = self._judge(waiting)
        if isinstance(verdict, Grant):
            self._grant(waiting.queue, known.head, waiting.shape, verdict, [])
        else:
            self._blocks[waiting.queue, waiting.shape] = verdict
            if not self._lead(waiting.queue, known.head, waiting, verdict):
                self._cache.stop_reclaim()  # its queue was closed, or its cluster was lost

    def _next(self, firsts: list[OrderInQueue]) -> Resources:
        """Return the demand of the first HyperJob of a line."""
        waiting = self._cache.entries[firsts[0][2]].waiting if firsts else None
        return waiting.shape.needs.floor if waiting is not None else {}

    def _advance(self, queue: str, firsts: list[OrderInQueue]) -> bool:
        """Try the HyperJobs of a line up to the first grant; return whether more may follow."""
        fifo = self._is_fifo(queue)
        while firsts:
            order = heapq.heappop(firsts)
            key = order[2]
            waiting = self._cache.entries[key].waiting
            if waiting is None or waiting.order != order or (queue, waiting.shape) in self._blocks:
                continue
            verdict = self._judge(waiting)
            if isinstance(verdict, Grant):
                self._grant(queue, key, waiting.shape, verdict, firsts)
                return True
            self._blocks[queue, waiting.shape] = verdict
            if queue not in self._led:
                self._lead(queue, key, waiting, verdict)
            if fifo and (queue in self._led or not waiting.shape.needs.needed):
                for behind in firsts:
                    later = self._cache.entries[behind[2]].waiting
                    if later is not None:
                        self._blocks.setdefault((queue, later.shape), _BEHIND)
                return False
        return False

    def _judge(self, waiting: Pending) -> Grant | Block:
        shape, space, account = waiting.shape, self._cache.space, self._account
        if shape.queues not in self._closed:
            self._closed[shape.queues] = closed(shape.queues, account)
        block = self._closed[shape.queues]
        if block is not None:
            able = [part for part in waiting.parts if account.tree.trouble(part.queue) is None]
            if len(able) < max(1, shape.needs.needed):
                return block
            found = try_to_admit(able, shape.needs, account, space)
            return found if isinstance(found, Grant) else block
        if account.tree.guaranteed and is_guaranteed(waiting.parts, account):
            # A guarantee precedes the reservations of heads: the room is `open`, without them.
            return try_to_admit(waiting.parts, shape.needs, self._account, self._cache.open)
        if self._cache.exceeds(waiting) and fits(shape.needs.floor, space.most):
            # The block is then the limit, whether there is room now or not.
            return try_to_admit(waiting.parts, shape.needs, account, space)
        if shape.needs in self._failed:
            return CAPACITY
        if not space.allows(shape.needs.floor):
            self._failed.add(shape.needs)
            return CAPACITY
        verdict = try_to_admit(waiting.parts, shape.needs, self._account, space)
        if verdict is CAPACITY:
            self._failed.add(shape.needs)
        return verdict

    def _grant(
        self, queue: str, key: str, shape: Shape, grant: Grant, firsts: list[OrderInQueue]
    ) -> None:
        waiting = self._cache.entries[key].waiting
        for part in waiting.parts if waiting is not None else ():
            if cluster := grant.clusters.get(part.name):
                self._cache.space.put(part.request, cluster)
                self._cache.open.put(part.request, cluster)
        self._cache.grant(key, grant.clusters, now=self._now)
        self._outlook = None
        self._granted[key] = None
        rest = self._cache.entries[key].waiting
        for each in (shape, rest.shape if rest is not None and rest.queue == queue else None):
            order = self._cache.lines.first(queue, each) if each is not None else None
            if order is not None:
                heapq.heappush(firsts, order)

    def _will_go(self, gang: Sequence[QueuedSubJob], waiting: Pending) -> bool:
        """Return whether a gang has room, beside all guarantees, after the end of all HyperJobs."""
        needs, account, space = waiting.shape.needs, self._account, self._cache.space
        if self._cache.exceeds(waiting):
            return False
        could = self._cache.could.get(needs)
        if could is None:
            requests = [part.request for part in waiting.parts]
            found = space.could(requests, needs.standing, needs.max_domains)
            could = self._cache.could[needs] = found >= needs.needed
        return could and leaves_guarantees(gang, account, space.most)

    def _lead(self, queue: str, key: str, waiting: Pending, block: Block) -> bool:
        """Reserve room for the first of a line if it can ever start; return whether it can."""
        needs, account, space = waiting.shape.needs, self._account, self._cache.space
        if not needs.needed or block.code is WaitCode.NOT_OPEN:
            return False
        gang = gang_of(waiting.parts, needs, account)
        if not self._will_go(gang, waiting):
            return False
        if block.code is WaitCode.GUARANTEE:
            account.reserve_for_head(total(part.request.demand for part in gang), space.sum)
        elif block.code is not WaitCode.LIMIT:
            wants = self._cache.wants.get(needs)
            if wants is None:
                requests = [part.request for part in waiting.parts]
                most, limit = needs.needed, needs.max_domains
                wants = space.wants(requests, most=most, max_domains=limit)
                self._cache.wants[needs] = wants
            space.keep(wants)
            self._cache.heads[queue] = key
        self._led.add(queue)
        self._take_back(key, waiting)
        if self._cache.heads.get(queue) == key:
            self._expect(queue, key, waiting)
        for part in gang:
            account.claim(part.queue, part.request.demand)
        return True

    def _expect(self, queue: str, key: str, waiting: Pending) -> None:
        """Compute the expected start of a head; until then others may use its reserved room."""
        cache, known = self._cache, self._cache.reclaiming()
        start = None
        if known is None or known.head != key:  # a reclaim frees the room sooner
            if self._outlook is None:
                self._outlook = CapacityTimeline(cache.open, cache.ends(now=self._now))
            start = self._outlook.earliest(waiting)
        if start is not None and start.after:
            cache.starts[key] = start
        self._starts[queue] = start

    def _backfill(self) -> None:
        """Admit HyperJobs that end, by their estimates, before the heads can use their room."""
        cache = self._cache
        known = {q: each for q, each in self._starts.items() if each and not each.overdue}
        if not known:
            return
        until = min(each.at for each in known.values())
        spare = self._spare(self._starts.keys() - known.keys())
        failed: set[PlacementNeeds] = set()  # the spare room only shrinks
        ahead = {queue: self._fillers(queue, until, spare) for queue in cache.lines.queues()}
        while ahead := {queue: orders for queue, orders in ahead.items() if orders}:
            queue = self._account.next_queue(
                {each: self._next(orders) for each, orders in ahead.items()}
            )
            key = heapq.heappop(ahead[queue])[2]
            waiting = cache.entries[key].waiting
            if waiting is None or waiting.shape.needs in failed:
                continue
            needs = waiting.shape.needs
            found: Grant | Block = CAPACITY
            if spare.allows(needs.floor):
                found = try_to_admit(waiting.parts, needs, self._account, spare)
            if isinstance(found, Grant):
                for part in waiting.parts:
                    if cluster := found.clusters.get(part.name):
                        spare.put(part.request, cluster)
                self._grant(queue, key, waiting.shape, found, [])
            elif found is CAPACITY:
                failed.add(needs)

    def _spare(self, queues: Iterable[str]) -> Space:
        """Return the free room without the reservations of the heads with an unknown start."""
        cache = self._cache
        spare = cache.open.copy()
        for queue in sorted(queues):
            head = cache.entries[cache.heads[queue]].waiting
            if head is not None:
                spare.keep(cache.wants[head.shape.needs])
        return spare

    def _fillers(self, queue: str, until: datetime, spare: Space) -> list[OrderInQueue]:
        """Return the HyperJobs of a line that may backfill: they end before `until`, by estimates.

        They have no room beside the reservations, and may have some in the spare room; in order.
        """
        cache, heads = self._cache, set(self._cache.heads.values())
        if self._is_fifo(queue):
            return []
        return sorted(
            order
            for shape, orders in cache.lines.shapes(queue)
            if self._blocks.get((queue, shape)) is CAPACITY and spare.allows(shape.needs.floor)
            for order in orders
            if order[2] not in heads and cache.ends_by(order[2], until, now=self._now)
        )

    def _take_back(self, key: str, waiting: Pending) -> None:
        """Start a reclaim or a preemption for a head, unless another head is before it."""
        cache = self._cache
        ahead = [head for head in cache.heads.values() if head != key]
        if ahead or not cache.may_reclaim(now=self._now):
            return
        borrowers, known = borrowers_for(cache, waiting, now=self._now), cache.reclaiming()
        if borrowers:
            cache.reclaim(key, borrowers, now=self._now)
            self._asked |= dict.fromkeys(borrowers)
        elif borrowers is None and known is not None and known.head == key:
            cache.stop_reclaim()  # no choice of borrowers gives it enough room any more

    def _is_fifo(self, queue: str) -> bool:
        known = self._account.tree.queues.get(queue)
        return known is not None and known.fifo
