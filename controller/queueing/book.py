"""The book of all HyperJobs: who holds a share, who waits, what the last round said of them.

A memory of what objects say and of grants not yet seen in them; built anew after a restart. It
asks no clock and makes no call: times are given to it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from weakref import WeakKeyDictionary

from controller.model.observed import Cluster
from controller.model.request import Request
from controller.model.resources import Resources, accelerator_of, total
from controller.queueing.account import Account
from controller.queueing.admit import Block, Kind
from controller.queueing.confirm import Confirmer, OurQueues
from controller.queueing.lines import Lines
from controller.queueing.occupancy import Occupancy
from controller.queueing.queues import Queue, Tree
from controller.queueing.room import Space
from controller.queueing.shapes import Shape, Shapes, Site
from controller.queueing.units import OrderInQueue, Part, Unit

_FIRST_REST: Final = timedelta(seconds=5)
_LONGEST_REST: Final = timedelta(minutes=5)
_FOLLOWED: Final = 10  # in each line: what is free is written anew for these
_RESTING: Final = Block(kind=Kind.RESTING)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a HyperJob waits for, and where."""

    parts: tuple[Part, ...]
    shape: Shape
    queue: str
    order: OrderInQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """Who is giving back what was lent, and for whom; nobody else is asked before `until`."""

    head: str
    borrowers: set[str]
    until: datetime


@dataclass(slots=True)
class Entry:
    """What is known of one HyperJob.

    `granted` are ours, not yet seen in its objects; `spots` the clusters promised to what is not
    made yet; `told` the gist of what its status said last.
    """

    unit: Unit
    granted: set[str] = field(default_factory=set)
    spots: dict[str, str] = field(default_factory=dict)
    holding: dict[str, tuple[Part, str]] = field(default_factory=dict)
    waiting: Waiting | None = None
    rests_until: datetime | None = None
    rests: int = 0
    reclaims: int = 0
    told: object = None

    @property
    def missing(self) -> list[Part]:
        """Return the sub-jobs that hold a share and are not made."""
        return [part for name, (part, _) in self.holding.items() if name not in self.unit.made]


class Book:
    """All HyperJobs in all queues."""

    def __init__(
        self,
        *,
        lag: timedelta,
        counts: Callable[[str], bool] = lambda _: False,
        confirmer: Confirmer | None = None,
        names_others: bool = True,
    ) -> None:
        """`lag` is the longest time until a cluster's status shows that pods are gone.

        `confirmer` says which queues there are, else those that `set_queues` gets. `counts` tells
        whether the vcjob of a key is taken off what is free already: it is from the moment it is
        created, which is before its HyperJob is looked at again.
        """
        self._counts = counts
        self._lag = lag
        self.names_others = names_others
        self._began: datetime | None = None
        self.known = False
        self.entries: dict[str, Entry] = {}
        self.lines = Lines()
        self.account = Account(Tree((), {}))
        self.space = Space((), {})
        self.open = Space((), {})
        self.heads: dict[str, str] = {}
        self.reclaim: Reclaim | None = None
        self.missing: dict[str, None] = {}
        self.blocks: dict[tuple[str, Shape], Block] = {}
        self.could: WeakKeyDictionary[Site, bool] = WeakKeyDictionary()
        self.wants: WeakKeyDictionary[Site, Mapping[str, Resources]] = WeakKeyDictionary()
        self._shapes = Shapes()
        self._confirmer = confirmer or OurQueues()
        self._queues: tuple[Queue, ...] = ()
        self._rules: tuple[Queue, ...] = ()
        self._others: Mapping[str, Resources] = {}
        self._holders: set[str] = set()
        self._room_changed = False
        self.holders: dict[str, None] = {}
        self._resting: dict[str, None] = {}
        self._occupancy = Occupancy(lag=lag)
        self._total: Resources = {}
        self._eventual: Mapping[str, Resources] = {}

    def fresh(self, confirmer: Confirmer | None = None) -> "Book":
        """Return an empty book for the same clusters."""
        return Book(
            lag=self._lag, counts=self._counts, confirmer=confirmer, names_others=self.names_others
        )

    @property
    def rules(self) -> Sequence[Queue]:
        """Return the queues as the last round had them."""
        return self._rules

    def holds(self, job: str) -> bool:
        """Tell whether a sub-job, `namespace/name`, holds a share."""
        return job in self._holders

    @property
    def needs_queues(self) -> bool:
        """Tell whether Queue objects have to be known before anything is admitted."""
        return self._confirmer.needs_queues

    def set_queues(self, queues: Iterable[Queue]) -> None:
        """Learn all queues anew; before the first time nobody is admitted."""
        self._queues = tuple(queues)
        self._rules = tuple(self._confirmer.queues(self._queues, ()))
        self.known = True
        self._open_account()

    def put(self, key: str, unit: Unit | None, *, now: datetime) -> bool:
        """Learn what a HyperJob says now; None: it has ended. Return whether that matters."""
        entry = self.entries.get(key)
        unit = None if unit is None else self._confirmer.unit(unit)
        if unit is None:
            if entry is None:
                return False
            self._change(key, entry, Unit(key=key, minimum=0, parts=()), now)
            del self.entries[key]
            return True
        if entry is None:
            entry = self.entries[key] = Entry(Unit(key=key, minimum=0, parts=()))
        elif entry.unit == unit:
            return False
        elif entry.unit.parts != unit.parts:
            entry.rests_until, entry.rests = None, 0
        self._change(key, entry, unit, now)
        return True

    def grant(self, key: str, clusters: Mapping[str, str], *, now: datetime) -> None:
        """Give sub-jobs a share and promise them their clusters."""
        entry = self.entries[key]
        entry.granted |= clusters.keys()
        entry.spots |= clusters
        self._change(key, entry, entry.unit, now)

    def returned(self, key: str, names: frozenset[str], *, now: datetime) -> timedelta | None:
        """Take back grants that came to nothing; return how long the HyperJob rests then."""
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

    def take_back(self, head: str, borrowers: Iterable[str], *, now: datetime) -> None:
        """Have borrowers give back what they hold; whoever cannot use it asks again later."""
        entry = self.entries[head]
        until = now + self._lag * (1 << min(entry.reclaims, 6))
        entry.reclaims += 1
        self.reclaim = Reclaim(head=head, borrowers=set(borrowers), until=until)

    def gives_back_for(self, key: str) -> str:
        """Name the HyperJob for which another one is to give back what it holds; empty for none."""
        known = self.reclaiming()
        return known.head if known is not None and key in known.borrowers else ""

    def is_preempted(self, key: str) -> bool:
        """Tell whether a HyperJob makes way for a more urgent one of its own queue."""
        known = self.reclaiming()
        if known is None or key not in known.borrowers:
            return False
        return may_preempt(self.entries[known.head], self.entries[key], self.account.tree)

    def reclaiming(self) -> Reclaim | None:
        """Return who gives back for whom, as long as that one waits."""
        if self.reclaim is not None:
            entry = self.entries.get(self.reclaim.head)
            waiting = entry.waiting if entry is not None else None
            if waiting is None or not waiting.shape.site.needed:
                self.reclaim = None
        return self.reclaim

    def may_take_back(self, *, now: datetime) -> bool:
        """Tell whether somebody may be asked now: nobody is giving back, and all ends are seen."""
        moment = self._takes_back_from()
        return moment is not None and moment <= now

    def coming(self) -> Space:
        """Return the room that there will be when clusters show all that has ended."""
        return self.open.emptied(self._occupancy.fading)

    def begin(
        self,
        clusters: Sequence[Cluster],
        *,
        shown: Mapping[str, Resources] | None = None,
        now: datetime,
    ) -> None:
        """Begin a round with what is free now, less what is promised.

        `shown` is what each cluster's status alone says is free, without our reservations.
        """
        self._began = self._began or now
        for key in list(self._resting):
            entry = self.entries[key]
            if entry.rests_until is not None and entry.rests_until <= now:
                entry.rests_until = None
                self._change(key, entry, entry.unit, now)
        usable = [cluster for cluster in clusters if cluster.usable]
        capacity = total(cluster.allocatable for cluster in usable)
        rules = tuple(self._confirmer.queues(self._queues, clusters))
        others = self._confirmer.others(self.holds)
        if capacity != self._total or rules != self._rules:
            self._total, self._rules, self._others = capacity, rules, others
            self._open_account()
        elif others != self._others:
            self._count_others(-1)
            self._others = others
            self._count_others(1)
        eventual = self._occupancy.eventual(usable, shown or {}, now=now)
        if eventual != self._eventual:
            self._eventual = eventual
            self.could.clear()
            self.wants.clear()
        self.account.forget_claims()
        self.heads.clear()
        self.space = Space(clusters, eventual)
        self._keep_promises()
        self._room_changed |= self.open.sum != self.space.sum
        self.open = self.space.copy()

    def admitted(self, key: str) -> frozenset[str]:
        """Return the sub-jobs of a HyperJob that may be made."""
        entry = self.entries.get(key)
        return frozenset(entry.holding) if entry is not None else frozenset()

    def block_of(self, entry: Entry) -> Block | None:
        """Return what the last round said of those that wait; None when nobody has looked yet."""
        if entry.rests_until is not None:
            return _RESTING
        waiting = entry.waiting
        return self.blocks.get((waiting.queue, waiting.shape)) if waiting is not None else None

    def is_contended(self, key: str) -> bool:
        """Tell whether another one waits that may use what this one holds.

        Whoever asks a closed queue, or for more than there will ever be for it, may not.
        """
        return any(other != key for other in self._resting) or any(
            self.could.get(shape.site, True)
            and _may_use(self.blocks.get((queue, shape)))
            and any(order[2] != key for order in orders[:2])
            for queue, shape, orders in self.lines.groups()
        )

    def promised(self, *, but: str) -> dict[str, list[Request]]:
        """Return the sub-jobs of other HyperJobs that are promised a cluster and not made yet."""
        found: dict[str, list[Request]] = {}
        for key in self.missing:
            entry = self.entries[key]
            for part in self._promises(entry) if key != but else ():
                if cluster := entry.spots.get(part.name):
                    found.setdefault(cluster, []).append(part.request)
        return found

    def next_change(self, *, now: datetime) -> timedelta | None:
        """Tell when time alone may admit somebody."""
        if not self.lines:
            return None
        resting = (self.entries[key].rests_until for key in self._resting)
        taking = self._takes_back_from()
        if taking is not None and taking <= now:
            taking = None  # time has done what it can
        times = [self._occupancy.next_change(), taking, *resting]
        return min((max(each - now, timedelta()) for each in times if each), default=None)

    def _takes_back_from(self) -> datetime | None:
        """Return from when on borrowers may be asked; None while others have to act before that.

        A controller that has just begun cannot know yet what its predecessor took back.
        """
        tree = self.account.tree
        if not (tree.lends or tree.preempts) or self._began is None:
            return None
        known = self.reclaiming()
        if known is None:
            return self._began + self._lag
        return None if known.borrowers else known.until

    def untold(self) -> Iterator[str]:
        """Name those whose message says something else than when it was told last."""
        changed = self.lines.changed.copy()
        self.lines.changed.clear()
        followed = self.lines.queues() if self._room_changed else ()
        self._room_changed = False
        for queue in sorted({*changed, *followed}):
            line = self.lines.line(queue)
            for place, order in enumerate(line if queue in changed else line[:_FOLLOWED], start=1):
                entry = self.entries[order[2]]
                if entry.told != self.gist(entry, place):
                    yield order[2]

    def gist(self, entry: Entry, place: int) -> tuple[Kind | None, int, int, int]:
        """Return what of a message must not go stale: block, rough place, what is free and used.

        Far from the head of a line a place is told roughly, and what is free is of the time when
        the message was written, so that one step of a line of thousands changes few messages.
        """
        block, free, used = self.block_of(entry), 0, 0
        if entry.waiting is not None and place <= _FOLLOWED:
            demand = entry.waiting.parts[0].request.demand
            measure = accelerator_of(demand) or "cpu"
            free = self.open.sum.get(measure, 0)
            used = self.account.used(entry.waiting.queue).get(measure, 0)
        return block.kind if block is not None else None, roughly(place), free, used

    def _change(self, key: str, entry: Entry, unit: Unit, now: datetime) -> None:
        """Bring holdings, occupancy and line up to date with a unit and the grants."""
        entry.unit = unit
        entry.granted &= {part.name for part in unit.parts}
        entry.granted -= unit.held | unit.ended
        holds = (unit.held | entry.granted) - unit.ended
        entry.spots = {
            name: spot
            for name, spot in entry.spots.items()
            if name in holds and name not in unit.made
        }
        before = entry.holding
        entry.holding = {
            part.name: (part, _cluster_of(entry, part.name))
            for part in unit.parts
            if part.name in holds
        }
        if entry.holding:
            self.holders[key] = None
        else:
            self.holders.pop(key, None)
        if entry.holding != before:
            self._rebook(key.partition("/")[0], before, entry.holding, now)
        if any(name not in unit.made for name in entry.holding):
            self.missing[key] = None
        else:
            self.missing.pop(key, None)
        if self.reclaim is not None and not entry.holding:
            self.reclaim.borrowers.discard(key)
        self._line_up(key, entry)

    def _rebook(
        self,
        namespace: str,
        before: Mapping[str, tuple[Part, str]],
        after: Mapping[str, tuple[Part, str]],
        now: datetime,
    ) -> None:
        self._room_changed = True
        self._holders -= {f"{namespace}/{name}" for name in before}
        self._holders |= {f"{namespace}/{name}" for name in after}
        for name, (part, cluster) in before.items():
            self.account.add(part.queue, part.request.demand, -1)
            self._occupancy.drop(cluster, part.request.demand)
            if name not in after:
                self._occupancy.fade(cluster, part.request.demand, now=now)
        for part, cluster in after.values():
            self.account.add(part.queue, part.request.demand)
            self._occupancy.hold(cluster, part.request.demand)

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
            shape = self._shapes.of(unit, parts, needed=needed, promised=entry.spots)
            entry.waiting = Waiting(parts, shape, parts[0].queue, unit.order)
            resting = entry.rests_until is not None
            self.lines.join(parts[0].queue, shape, unit.order, resting=resting)
        if entry.rests_until is not None:
            self._resting[key] = None
        else:
            self._resting.pop(key, None)

    def _open_account(self) -> None:
        """Count anew: queues or the total have changed."""
        self.account = Account(Tree(self._rules, self._total))
        self._count_others(1)
        for entry in self.entries.values():
            for part, _ in entry.holding.values():
                self.account.add(part.queue, part.request.demand)
        self.lines.changed.update(self.lines.queues())

    def _count_others(self, sign: int) -> None:
        for queue, used in self._others.items():
            self.account.add(queue, used, sign)
        self.lines.changed.update(queue for queue in self._others if self.lines.line(queue))

    def _promises(self, entry: Entry) -> list[Part]:
        """Return the sub-jobs that hold a share and take nothing that is counted yet."""
        namespace = entry.unit.key.partition("/")[0]
        return [part for part in entry.missing if not self._counts(f"{namespace}/{part.name}")]

    def _keep_promises(self) -> None:
        """Take the room of what holds a share and is not made; find it room where it has none."""
        for key in sorted(self.missing, key=lambda key: self.entries[key].unit.order):
            entry = self.entries[key]
            homeless = []
            for part in self._promises(entry):
                spot = entry.spots.get(part.name)
                if spot in self.space.free:
                    self.space.put(part.request, spot)
                else:
                    entry.spots.pop(part.name, None)
                    homeless.append(part.request)
            if not homeless:
                continue
            unit = entry.unit
            standing = [
                (part.request.group, cluster) for part, cluster in entry.holding.values() if cluster
            ]
            found = self.space.assign(homeless, standing, unit.max_domains)
            for request in homeless:
                if request.name in found:
                    entry.spots[request.name] = found[request.name]
                    self.space.put(request, found[request.name])
            left = [request for request in homeless if request.name not in found]
            if left:
                most, limit = len(left), unit.max_domains
                self.space.keep(self.space.wants(left, most=most, max_domains=limit))


def may_preempt(head: Entry, other: Entry, tree: Tree) -> bool:
    """Tell whether a HyperJob that waits may stop one that holds a share of the same queue."""
    waiting = head.waiting
    if waiting is None or not head.unit.preempts or other.unit.priority >= head.unit.priority:
        return False
    queues = {part.queue for part, _ in other.holding.values()}
    known = tree.queues.get(waiting.queue)
    return queues == {waiting.queue} and known is not None and known.preemption


def _may_use(block: Block | None) -> bool:
    if block is None:
        return True
    over = block.limit is not None and not block.limit.ever
    return block.kind is not Kind.NOT_OPEN and not over


def roughly(place: int) -> int:
    """Round a place to its first digit, or its first two from 100 on, never to 0."""
    if place <= 10:
        return place
    step = 10 if place < 100 else 10 ** (len(str(place)) - 2)
    return place // step * step


def _cluster_of(entry: Entry, name: str) -> str:
    """Return where a sub-job is, or is to be; the last known place while nothing is known."""
    known = entry.unit.clusters.get(name) or entry.spots.get(name)
    return known or (entry.holding[name][1] if name in entry.holding else "")
