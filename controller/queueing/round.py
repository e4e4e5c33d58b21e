"""One round: everybody that the rules allow is admitted, in order.

Queues take turns by priority and by how much of their share they use; in a line, priority and age
count. The first of a line that has no room, and will have some, keeps what it could use: those
behind it pass only where they cannot delay it.
"""

import heapq
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from controller.model.resources import Resources, total
from controller.queueing.admit import (
    CAPACITY,
    Block,
    Grant,
    Kind,
    closed,
    gang_of,
    is_guaranteed,
    leaves_guarantees,
    try_to_admit,
)
from controller.queueing.book import Book, Waiting
from controller.queueing.reclaim import borrowers_for
from controller.queueing.shapes import Shape, Site
from controller.queueing.units import OrderInQueue, Part

_BEHIND: Final = Block(kind=Kind.BEHIND)


def play(book: Book, *, now: datetime) -> list[str]:
    """Play a round that has begun; return whoever was granted something or is to give back."""
    return _Round(book, now).play() if book.known else []


class _Round:
    """What one round remembers: what fails once fails to its end, for room only shrinks."""

    def __init__(self, book: Book, now: datetime) -> None:
        self._book = book
        self._now = now
        self._blocks: dict[tuple[str, Shape], Block] = {}
        self._closed: dict[tuple[str, ...], Block | None] = {}
        self._failed: set[Site] = set()
        self._led: set[str] = set()
        self._granted: dict[str, None] = {}
        self._asked: dict[str, None] = {}

    def play(self) -> list[str]:
        book = self._book
        self._resume()
        ahead = {queue: book.lines.firsts(queue) for queue in book.lines.queues()}
        while ahead:
            queue = book.account.whose_turn(
                {each: self._next(firsts) for each, firsts in ahead.items()}
            )
            if not self._advance(queue, ahead[queue]):
                del ahead[queue]
        for (queue, shape), block in self._blocks.items():
            before = book.blocks.get((queue, shape))
            if before is None or before.kind is not block.kind:
                book.lines.changed.add(queue)
        book.blocks = self._blocks
        return [*self._granted, *self._asked]

    def _resume(self) -> None:
        """Begin with the one that others give back for: nobody else gets what becomes free."""
        known = self._book.reclaiming()
        entry = self._book.entries[known.head] if known is not None else None
        if known is None or entry is None or entry.waiting is None or entry.rests_until:
            return
        waiting = entry.waiting
        verdict = self._judge(waiting)
        if isinstance(verdict, Grant):
            self._grant(waiting.queue, known.head, waiting.shape, verdict, [])
        else:
            self._blocks[waiting.queue, waiting.shape] = verdict
            if not self._lead(waiting.queue, known.head, waiting, verdict):
                self._book.reclaim = None  # its queue was closed, or its room is lost

    def _next(self, firsts: list[OrderInQueue]) -> Resources:
        """Return what the first of a line asks for."""
        waiting = self._book.entries[firsts[0][2]].waiting if firsts else None
        return waiting.shape.site.floor if waiting is not None else {}

    def _advance(self, queue: str, firsts: list[OrderInQueue]) -> bool:
        """Go along a line until somebody is admitted; tell whether anybody may be left."""
        fifo = self._is_fifo(queue)
        while firsts:
            order = heapq.heappop(firsts)
            key = order[2]
            waiting = self._book.entries[key].waiting
            if waiting is None or waiting.order != order or (queue, waiting.shape) in self._blocks:
                continue
            verdict = self._judge(waiting)
            if isinstance(verdict, Grant):
                self._grant(queue, key, waiting.shape, verdict, firsts)
                return True
            self._blocks[queue, waiting.shape] = verdict
            if queue not in self._led:
                self._lead(queue, key, waiting, verdict)
            if fifo and (queue in self._led or not waiting.shape.site.needed):
                for behind in firsts:
                    later = self._book.entries[behind[2]].waiting
                    if later is not None:
                        self._blocks.setdefault((queue, later.shape), _BEHIND)
                return False
        return False

    def _judge(self, waiting: Waiting) -> Grant | Block:
        shape, space = waiting.shape, self._book.space
        if shape.queues not in self._closed:
            self._closed[shape.queues] = closed(shape.queues, self._book.account)
        block = self._closed[shape.queues]
        account = self._book.account
        if block is not None:
            able = [part for part in waiting.parts if not account.tree.problem(part.queue)]
            if len(able) < max(1, shape.site.needed):
                return block
            found = try_to_admit(able, shape.site, account, space)
            return found if isinstance(found, Grant) else block
        if account.tree.guaranteed and is_guaranteed(waiting.parts, account):
            # Not even a head of another queue keeps it from what it is guaranteed.
            return try_to_admit(waiting.parts, shape.site, self._book.account, self._book.open)
        if shape.site in self._failed or not space.allows(shape.site.floor):
            return CAPACITY
        verdict = try_to_admit(waiting.parts, shape.site, self._book.account, space)
        if verdict is CAPACITY:
            self._failed.add(shape.site)
        return verdict

    def _grant(
        self, queue: str, key: str, shape: Shape, grant: Grant, firsts: list[OrderInQueue]
    ) -> None:
        waiting = self._book.entries[key].waiting
        for part in waiting.parts if waiting is not None else ():
            if cluster := grant.clusters.get(part.name):
                self._book.space.put(part.request, cluster)
                self._book.open.put(part.request, cluster)
        self._book.grant(key, grant.clusters, now=self._now)
        self._granted[key] = None
        rest = self._book.entries[key].waiting
        for each in (shape, rest.shape if rest is not None and rest.queue == queue else None):
            order = self._book.lines.first(queue, each) if each is not None else None
            if order is not None:
                heapq.heappush(firsts, order)

    def _will_go(self, gang: Sequence[Part], waiting: Waiting) -> bool:
        """Tell whether a gang will have room, or a share, when all HyperJobs have ended."""
        site, account, space = waiting.shape.site, self._book.account, self._book.space
        if len(gang) < site.needed:
            return False
        could = self._book.could.get(site)
        if could is None:
            requests = [part.request for part in waiting.parts]
            found = space.could(requests, site.standing, site.max_domains)
            could = self._book.could[site] = found >= site.needed
        return could and leaves_guarantees(gang, account, space.most)

    def _lead(self, queue: str, key: str, waiting: Waiting, block: Block) -> bool:
        """Let the first of a line keep its place if it will go some day; tell whether it does."""
        site, account, space = waiting.shape.site, self._book.account, self._book.space
        if not site.needed or block.kind is Kind.NOT_OPEN:
            return False
        gang = gang_of(waiting.parts, site, account)
        if not self._will_go(gang, waiting):
            return False
        if block.kind is Kind.GUARANTEE:
            account.speak_for(total(part.request.demand for part in gang), space.sum)
        elif block.kind is not Kind.LIMIT:
            wants = self._book.wants.get(site)
            if wants is None:
                requests = [part.request for part in waiting.parts]
                most, limit = site.needed, site.max_domains
                wants = space.wants(requests, most=most, max_domains=limit)
                self._book.wants[site] = wants
            space.keep(wants)
            self._book.heads[queue] = key
        self._led.add(queue)
        self._take_back(key, waiting)
        for part in gang:
            account.claim(part.queue, part.request.demand)
        return True

    def _take_back(self, key: str, waiting: Waiting) -> None:
        """Have others give back what was lent to them, for one that nobody is ahead of."""
        book = self._book
        ahead = [head for head in book.heads.values() if head != key]
        if ahead or not book.may_take_back(now=self._now):
            return
        borrowers, known = borrowers_for(book, waiting), book.reclaim
        if borrowers:
            book.take_back(key, borrowers, now=self._now)
            self._asked |= dict.fromkeys(borrowers)
        elif borrowers is None and known is not None and known.head == key:
            book.reclaim = None  # all was in vain: it is not first any more

    def _is_fifo(self, queue: str) -> bool:
        known = self._book.account.tree.queues.get(queue)
        return known is not None and known.fifo
