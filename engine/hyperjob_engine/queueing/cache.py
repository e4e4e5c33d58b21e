"""The queue cache: all HyperJobs that hold a share or wait, with the result of the last round.

It holds the state of API objects, and grants that no object shows yet; a new leader rebuilds it
from the objects. It does no I/O and reads no clock: callers pass the time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Final
from weakref import WeakKeyDictionary

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.queueing.account import QueueUsage
from hyperjob_engine.queueing.admit import Block, gang_of
from hyperjob_engine.queueing.backfill import end_of, estimate_of
from hyperjob_engine.queueing.confirm import BuiltinQueues, Confirmer
from hyperjob_engine.queueing.entries import Entry, ExpectedEnd, Pending, StaleMessage
from hyperjob_engine.queueing.holdings import Holdings
from hyperjob_engine.queueing.lines import Lines
from hyperjob_engine.queueing.queues import Queue, Tree
from hyperjob_engine.queueing.reclaims import Reclaim, Reclaims
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.shapes import PlacementNeeds, Shape, Shapes
from hyperjob_engine.queueing.shares import Shares
from hyperjob_engine.queueing.units import QueuedHyperJob
from hyperjob_engine.reasons.waiting import MessageFacts, Start, WaitCode, roughly
from hyperjob_engine.resources import Resources

_FIRST_REST: Final = timedelta(seconds=5)
_LONGEST_REST: Final = timedelta(minutes=5)
FOLLOWED: Final = 10
"""How many HyperJobs of each line have the free resources and their start in their message."""
_RESTING: Final = Block(code=WaitCode.RESTING)


class QueueCache:
    """All HyperJobs in all queues."""

    def __init__(
        self,
        *,
        lag: timedelta,
        counts: Callable[[str], bool] = lambda _: False,
        confirmer: Confirmer | None = None,
        names_others: bool = True,
        most_in_flight: float = inf,
        forecast_every: timedelta = timedelta(minutes=5),
        places_every: timedelta = timedelta(seconds=30),
    ) -> None:
        """`lag` is the longest time until a Cluster's status no longer counts deleted pods.

        `confirmer` chooses the queues; the default takes those of `set_queues`. `counts` returns
        whether the free resources already exclude the vcjob of a key: they do from its creation
        on, before the next pass of its HyperJob. A round admits no more HyperJobs while
        `most_in_flight` admitted sub-jobs have no object yet. The engine computes the expected
        starts behind the heads of lines again after `forecast_every`. A HyperJob further behind
        whose place alone has changed gets a new message after `places_every`.
        """
        self._places_every = places_every
        self._forecast_every = forecast_every
        self.most_in_flight = most_in_flight
        self._counts = counts
        self._lag = lag
        self._confirmer = confirmer or BuiltinQueues()
        self.names_others = names_others
        self.known = False
        self.entries: dict[str, Entry] = {}
        self.lines = Lines()
        self.space = Space((), {})
        self.open = Space((), {})
        self.heads: dict[str, str] = {}
        self.starts: dict[str, Start] = {}
        self.later: Mapping[str, Start] = {}
        self._forecast_at: datetime | None = None
        # Heads with a start, and the starts behind them, as of the last check of messages.
        self._forecast: tuple[frozenset[str], Mapping[str, Start]] = frozenset(), self.later
        self._now: datetime | None = None
        self.blocks: dict[tuple[str, Shape], Block] = {}
        self.could: WeakKeyDictionary[PlacementNeeds, bool] = WeakKeyDictionary()
        self.wants: WeakKeyDictionary[PlacementNeeds, Mapping[str, Resources]] = WeakKeyDictionary()
        self._exceeds: WeakKeyDictionary[Shape, bool] = WeakKeyDictionary()
        self._exceeds_in: Tree | None = None  # the tree for which it was computed
        self._shares = Shares(self._confirmer, self.lines)
        self._holdings = Holdings(self.entries, self._shares, lag=lag, counts=counts)
        self._reclaims = Reclaims(self.entries, lag=lag)
        self._shapes = Shapes()
        self._places: dict[str, datetime] = {}
        self._behind: set[str] = set()  # lines with unchecked places behind the first ten
        self._resting: dict[str, None] = {}
        self._flying: dict[str, int] = {}
        self.in_flight = 0
        self._eventual: Mapping[str, Resources] = {}

    def fresh(self, confirmer: Confirmer | None = None) -> "QueueCache":
        """Return an empty cache for the same clusters."""
        return QueueCache(
            lag=self._lag,
            counts=self._counts,
            confirmer=confirmer,
            names_others=self.names_others,
            most_in_flight=self.most_in_flight,
            forecast_every=self._forecast_every,
            places_every=self._places_every,
        )

    @property
    def account(self) -> QueueUsage:
        """Return what each queue uses."""
        return self._shares.account

    @property
    def queues(self) -> Sequence[Queue]:
        """Return the queues as the last round had them."""
        return self._shares.queues

    @property
    def holders(self) -> Iterable[str]:
        """Return the HyperJobs that hold a share."""
        return self._holdings.holders

    @property
    def has_reservations(self) -> bool:
        """Return whether a sub-job holds a share and does not exist."""
        return bool(self._holdings.missing)

    @property
    def needs_queues(self) -> bool:
        """Return whether the engine admits no HyperJob before it knows the Queue objects."""
        return self._confirmer.needs_queues

    def set_queues(self, queues: Iterable[Queue]) -> None:
        """Replace all queues; before the first call the engine admits no HyperJob."""
        self.known = True
        self._shares.set_queues(queues, self.entries.values())

    def put(self, key: str, unit: QueuedHyperJob | None, *, now: datetime) -> bool:
        """Add, replace or, with None, remove a HyperJob; return whether the cache changed."""
        entry = self.entries.get(key)
        unit = None if unit is None else self._confirmer.unit(unit)
        if unit is None:
            if entry is None:
                return False
            self._change(key, entry, QueuedHyperJob(key=key, minimum=0, parts=()), now)
            del self.entries[key]
            return True
        if entry is None:
            entry = self.entries[key] = Entry(QueuedHyperJob(key=key, minimum=0, parts=()))
        elif entry.unit == unit:
            entry.unit = unit  # it may have a newer checkpoint
            return False
        elif entry.unit.parts != unit.parts:
            entry.rests_until, entry.rests = None, 0
        self._change(key, entry, unit, now)
        return True

    def grant(self, key: str, clusters: Mapping[str, str], *, now: datetime) -> None:
        """Admit sub-jobs: they hold a share of their queue and a reservation on their cluster."""
        entry = self.entries[key]
        entry.granted = entry.granted.union(clusters)
        entry.reserved_clusters |= clusters
        self._change(key, entry, entry.unit, now)

    def returned(self, key: str, names: frozenset[str], *, now: datetime) -> timedelta | None:
        """Revoke unused grants; return for how long the engine then does not admit the HyperJob."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not entry.granted & names:
            entry.rests = 0
            return None
        entry.granted -= names
        rest = min(_LONGEST_REST, _FIRST_REST * (1 << min(entry.rests, 16)))
        entry.rests += 1
        entry.rests_until = now + rest
        self._change(key, entry, entry.unit, now)
        return rest

    def reserved(self, *, but: str) -> dict[str, list[PlacementRequest]]:
        """Return the sub-jobs of other HyperJobs that have a reservation, by cluster."""
        return self._holdings.reserved(but=but)

    def exceeds(self, waiting: Pending) -> bool:
        """Return whether a gang is larger than the capabilities of its queues."""
        if self._exceeds_in is not self.account.tree:
            self._exceeds_in = self.account.tree
            self._exceeds.clear()
        known = self._exceeds.get(waiting.shape)
        if known is None:
            needs = waiting.shape.needs
            known = len(gang_of(waiting.parts, needs, self.account)) < needs.needed
            self._exceeds[waiting.shape] = known
        return known

    def reclaim(self, head: str, borrowers: Iterable[str], *, now: datetime) -> None:
        """Start a reclaim: the borrowers make way for the head of a line."""
        self._reclaims.start(head, borrowers, now=now)

    def stop_reclaim(self) -> None:
        """End the present reclaim."""
        self._reclaims.stop()

    def reclaiming(self) -> Reclaim | None:
        """Return the present reclaim; None if there is none or its head no longer waits."""
        return self._reclaims.current()

    def gives_back_for(self, key: str) -> str:
        """Return the head of line for which a HyperJob makes way; empty if there is none."""
        return self._reclaims.head_for(key)

    def is_preempted(self, key: str) -> bool:
        """Return whether a HyperJob makes way for one of higher priority in its own queue."""
        return self._reclaims.is_preempted(key, self.account.tree)

    def may_reclaim(self, *, now: datetime) -> bool:
        """Return whether a reclaim may start: the Cluster status shows the end of earlier ones."""
        moment = self._reclaims.may_start_from(self.account.tree)
        return moment is not None and moment <= now

    def start_of(self, key: str) -> Start | None:
        """Return the expected start of a HyperJob at the head of a line or behind it, if known."""
        start = self.starts.get(key)
        if start is not None or self._now is None:
            return start
        later = self.later.get(key)
        return later if later is not None and later.at > self._now else None

    def wants_forecasts(self, *, now: datetime) -> bool:
        """Return whether a new forecast of the starts behind the heads of lines is due."""
        due = self._forecast_at is None or now >= self._forecast_at + self._forecast_every
        if due:
            self._forecast_at = now
        return due

    def ends(self, *, now: datetime) -> list[ExpectedEnd]:
        """Return the expected ends of the HyperJobs that hold a share, the soonest first."""
        tree = self.account.tree
        found = (
            end_of(key, entry, tree, now=now)
            for key in self.holders
            if (entry := self.entries.get(key)) is not None
            and (tree.estimates or entry.unit.estimate is not None)
        )
        space = self.open
        unseen = self._holdings.occupancy.unseen(space.clusters, space.free)
        gone = [ExpectedEnd(now, "", tuple(unseen))] if unseen else []
        known = [each for each in found if each is not None]
        return sorted([*gone, *known], key=lambda end: (end.at, end.key))

    def ends_by(self, key: str, until: datetime, *, now: datetime) -> bool:
        """Return whether a HyperJob that starts now ends, with `lag`, before a time."""
        estimate = estimate_of(self.entries[key], self.account.tree)
        return estimate is not None and now + estimate + self._lag <= until

    def room_after_ends(self) -> Space:
        """Return the room after every Cluster's status shows the pods that have ended."""
        return self.open.emptied(self._holdings.occupancy.fading)

    def begin(
        self,
        clusters: Sequence[Cluster],
        *,
        shown: Mapping[str, Resources] | None = None,
        now: datetime,
    ) -> None:
        """Begin a round with the free resources of the clusters minus the reservations.

        `shown` are the free resources by each Cluster's status alone, without the reservations.
        """
        self._reclaims.begin(now=now)
        for key in list(self._resting):
            entry = self.entries[key]
            if entry.rests_until is not None and entry.rests_until <= now:
                entry.rests_until = None
                self._change(key, entry, entry.unit, now)
        usable = [cluster for cluster in clusters if cluster.usable]
        self._shares.renew(clusters, self._holdings.holds, self.entries.values())
        eventual = self._holdings.eventual(usable, shown or {}, now=now)
        if eventual != self._eventual:
            self._eventual = eventual
            self.could.clear()
            self.wants.clear()
        self.account.forget_claims()
        self.heads.clear()
        self.starts.clear()
        self._now = now
        self.space = Space(clusters, eventual)
        self._holdings.reserve(self.space)
        self._holdings.changed |= self.open.sum != self.space.sum
        self.open = self.space.copy()

    def admitted(self, key: str) -> frozenset[str]:
        """Return the sub-jobs of a HyperJob that the controller may create."""
        entry = self.entries.get(key)
        return frozenset(entry.holding) if entry is not None else frozenset()

    def block_of(self, entry: Entry) -> Block | None:
        """Return why a HyperJob waits, by the last round; None before its first round."""
        if entry.rests_until is not None:
            return _RESTING
        waiting = entry.waiting
        return self.blocks.get((waiting.queue, waiting.shape)) if waiting is not None else None

    def is_contended(self, key: str) -> bool:
        """Return whether another HyperJob waits that could use the resources of this one.

        A HyperJob in a closed queue does not count, nor a HyperJob that can never have room.
        """
        return any(other != key for other in self._resting) or any(
            self.could.get(shape.needs, True)
            and _may_use(self.blocks.get((queue, shape)))
            and any(order[2] != key for order in orders[:2])
            for queue, shape, orders in self.lines.groups()
        )

    def next_change(self, *, now: datetime) -> timedelta | None:
        """Return the time until a HyperJob may be admitted without a change of an object."""
        if not self.lines:
            return None
        resting = (self.entries[key].rests_until for key in self._resting)
        taking = self._reclaims.may_start_from(self.account.tree)
        if taking is not None and taking <= now:
            taking = None  # its time limit has passed
        times = [self._holdings.occupancy.next_change(), taking, *resting]
        return min((max(each - now, timedelta()) for each in times if each), default=None)

    def stale_messages(self, *, now: datetime) -> Iterator[StaleMessage]:
        """Return the waiting HyperJobs whose stored message differs from the present facts.

        A HyperJob has no message before its first round.
        """
        lines = self.lines
        self._behind |= lines.moved
        due = {each for each in self._behind if self._places_are_due(each, now)}
        changed = lines.changed | due
        heads, later = self._forecast
        if self.starts.keys() != heads or self.later is not later:
            self._holdings.changed = True
            self._forecast = frozenset(self.starts), self.later
        followed = {*lines.moved, *(lines.queues() if self._holdings.changed else ())}
        self._behind -= changed
        lines.changed.clear()
        lines.moved.clear()
        self._holdings.changed = False
        for queue in sorted(changed | followed):
            line = lines.line(queue)
            if queue in changed:
                self._places[queue] = now
            for place, order in enumerate(line if queue in changed else line[:FOLLOWED], start=1):
                entry = self.entries[order[2]]
                block = self.block_of(entry)
                if block is None:
                    continue
                facts = self._facts(entry, block, place)
                written = entry.written
                if written is None or (facts.expected and not written.expected):
                    yield StaleMessage(order[2], timedelta(), news=True)
                elif written.code is not facts.code:
                    yield StaleMessage(order[2], timedelta())
                elif written != facts:
                    yield StaleMessage(order[2], entry.refresh_in(now=now))

    def _places_are_due(self, queue: str, now: datetime) -> bool:
        looked = self._places.get(queue)
        if not self.lines.line(queue):
            self._places.pop(queue, None)
        return looked is None or looked + self._places_every <= now

    def message_facts(self, entry: Entry, place: int) -> MessageFacts:
        """Return the parts of a message that are kept up to date: block, place, free and used.

        Far from the head of a line the place is rounded and the free resources are not kept up to
        date: one step of a line of thousands then changes few messages.
        """
        return self._facts(entry, self.block_of(entry), place)

    def _facts(self, entry: Entry, block: Block | None, place: int) -> MessageFacts:
        code, free, used = block.code if block is not None else None, 0, 0
        if place > FOLLOWED and not self.starts:
            return MessageFacts(code, roughly(place), 0, 0, "")
        if entry.waiting is not None and place <= FOLLOWED:
            measure = entry.waiting.parts[0].request.measure
            free = self.open.sum.get(measure, 0)
            used = self.account.used(entry.waiting.queue).get(measure, 0)
        start, expected = self.start_of(entry.unit.key), ""
        if start is not None:
            exact = entry.unit.key in self.starts
            minute = start.at.minute if exact else start.at.minute // 10
            expected = f"{start.at:%Y%m%d%H} {minute} {start.after}"
        return MessageFacts(code, roughly(place), free, used, expected)

    def _change(self, key: str, entry: Entry, unit: QueuedHyperJob, now: datetime) -> None:
        """Update holdings, occupancy and lines for a changed HyperJob and its grants."""
        entry.unit, entry.end = unit, None
        if entry.granted:
            entry.granted &= {part.name for part in unit.parts} - unit.held - unit.ended
        self._holdings.update(key, entry, now=now)
        self.in_flight += len(entry.granted) - self._flying.pop(key, 0)
        if entry.granted:
            self._flying[key] = len(entry.granted)
        if not entry.holding:
            self._reclaims.gave_back(key)
        self._line_up(key, entry)

    def _line_up(self, key: str, entry: Entry) -> None:
        unit, was = entry.unit, entry.waiting
        if was is not None:
            self.lines.leave(was.queue, was.shape, was.order)
            entry.waiting = None
        parts = tuple(
            part
            for part in unit.parts
            if part.name not in entry.holding and part.name not in unit.ended
        )
        if not parts:
            entry.rests_until = None
        else:
            standing = sum(not part.grows for part, _ in entry.holding.values())
            needed = max(0, unit.minimum - standing - len(unit.ended))
            shape = self._shapes.of(unit, parts, needed=needed, promised=entry.reserved_clusters)
            entry.waiting = Pending(parts, shape, parts[0].queue, unit.order)
            resting = entry.rests_until is not None
            self.lines.join(parts[0].queue, shape, unit.order, resting=resting)
        if entry.rests_until is not None:
            self._resting[key] = None
        else:
            self._resting.pop(key, None)


def _may_use(block: Block | None) -> bool:
    if block is None:
        return True
    over = block.limit is not None and not block.limit.ever
    return block.code is not WaitCode.NOT_OPEN and not over
