"""A HyperJob in the queue engine: its sub-jobs, the shape of what waits, and its entry.

The values hold no template, to save memory: ten thousand HyperJobs may wait.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from hyperjob_core.api.duration import doubled
from hyperjob_core.api.status import JobStatus
from hyperjob_engine.model.line import Chosen, MessageFacts
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import Choice, Step
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import Resources, total

_MADE_WAY: Final = frozenset({Reason.PREEMPTED, Reason.RECLAIMED})
_FIRST_REFRESH: Final = timedelta(seconds=1)
LONGEST_WAIT: Final = 4
"""How many times the patience of its queue a head waits at most before others stop for it."""
EARNED: Final = timedelta(hours=1)
"""For so long room is kept, once, for a head larger than the share of its queue."""
NONE: Final[frozenset[str]] = frozenset()
"""One object for all HyperJobs, to save memory: each empty set of its own has 216 bytes."""
_LAST_REFRESH: Final = timedelta(seconds=64)
_LAST_FAR_REFRESH: Final = timedelta(seconds=512)
"""The oldest that the numbers of a message may be, near the head of a line and behind."""


class OrderInQueue(NamedTuple):
    """The sort key of a HyperJob in its line: higher priority first, then age, then the key.

    A HyperJob that made way is behind the others of its priority: it has run already.
    """

    urgency: int  # the negated priority
    again: bool
    created: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedSubJob:
    """One sub-job in the queue engine, or a piece of an undecided automatic split."""

    queue: str
    request: PlacementRequest
    piece: bool = False  # of an automatic split, which is sized after its admission
    grows: bool = False  # the growth of a running sub-job, not a sub-job itself

    @property
    def name(self) -> str:
        """Return the sub-job's name."""
        return self.request.name


class Larger(NamedTuple):
    """A larger size of a HyperJob that runs, the sub-jobs that it adds, and how much faster it is.

    The program makes `pace` times as many steps in a second as it does now. `beyond`: it is more
    than the HyperJob would like.
    """

    size: Choice
    parts: tuple[QueuedSubJob, ...]
    pace: float
    beyond: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedHyperJob:
    """One HyperJob that has not ended; `made` are its existing sub-jobs, on `clusters`.

    `held` are the sub-jobs that hold a share of their queue, existing or about to be recreated.
    `preempts`: it may stop HyperJobs of lower priority. `since` is its last start, RFC 3339. `kept`
    is the time up to which its work is saved, empty if unknown: it changes with each checkpoint and
    matters only to the choice of HyperJobs that make way. `saves` is the time between checkpoints
    that its program is expected to save. `again`: it ran and made way for another HyperJob.
    `ends` is when it ends by the steps and the speed that its program reports. `estimate` is its
    estimated running time, and `limit` the longest that it may run. `template` is a hash of its
    templates.
    `grace` has the sub-jobs with pods in a member, and how long these pods may outlive the vcjob.
    `choice` are its alternatives, `shape` these without sizes, and `remaining` is the running time
    that is left with them. `variants` are the HyperJob with each choice that a round may take, the
    present one among them; of an `elastic` shape those with its sizes, the largest first. `spare`
    are the smaller sizes that it can take while it runs, the next one first, each with what the
    step to it frees.
    `more` are its larger sizes, the largest first, of which it may take one a time after `resized`.
    The first `surplus` steps of `spare` are beyond what it would like, as is all of it if `beyond`.
    `restart` is how long a restart took so far, which it needs for that; None: it needs none.
    """

    key: str
    uid: str = ""
    created: str = ""
    priority: int = 0
    minimum: int
    max_domains: int | None = None
    parts: tuple[QueuedSubJob, ...]
    held: frozenset[str] = NONE
    made: frozenset[str] = NONE
    ended: frozenset[str] = NONE
    clusters: Mapping[str, str] = field(default_factory=dict)
    preempts: bool = True
    since: str = ""
    kept: str = field(default="", compare=False)
    saves: timedelta | None = None
    again: bool = False
    ends: str = field(default="", compare=False)
    estimate: timedelta | None = None
    limit: timedelta | None = None
    template: str = ""
    grace: Mapping[str, timedelta] = field(default_factory=dict, compare=False)
    choice: Choice = ()
    shape: str = ""
    remaining: timedelta | None = None
    variants: tuple["QueuedHyperJob", ...] = ()
    elastic: bool = False
    spare: tuple[Step, ...] = ()
    surplus: int = 0
    beyond: bool = False
    more: tuple["Larger", ...] = ()
    resized: str = ""
    restart: timedelta | None = None

    @property
    def order(self) -> OrderInQueue:
        """Return the sort key of the HyperJob in its line: priority, then age."""
        return OrderInQueue(-self.priority, self.again, self.created, self.key)

    def renewed(self, other: "QueuedHyperJob") -> "QueuedHyperJob":
        """Return this HyperJob with those fields of an equal HyperJob that `==` leaves out.

        It keeps its own sub-jobs, which `Entry.holding` has too: they are in memory once.
        """
        if (self.kept, self.ends, self.grace) == (other.kept, other.ends, other.grace):
            return self
        return replace(self, kept=other.kept, ends=other.ends, grace=other.grace)


def has_made_way(jobs: Iterable[JobStatus]) -> bool:
    """Return whether a HyperJob with these sub-jobs ran and made way for another one."""
    return any(run.reason in _MADE_WAY for each in jobs for run in each.history)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class PlacementNeeds:
    """The needs of a waiting HyperJob on clusters; `floor` is the least that its gang demands.

    At least `needed` of the waiting sub-jobs must start together; 0: its gang is complete without
    them. `standing` are (group, cluster) of the others. `Shapes` makes the needs of sub-jobs of
    equal kinds one object, which is compared by identity.
    """

    needed: int
    max_domains: int | None
    standing: tuple[tuple[str, str], ...]
    floor: Resources


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Shape:
    """The needs of a waiting HyperJob on clusters, and the queues that must admit it.

    `chooses`: it has other choices of alternatives. Those of a shape have equal ones.
    """

    needs: PlacementNeeds
    queues: tuple[str, ...]
    chooses: bool = False


class Shapes:
    """All shapes in use: HyperJobs of equal needs and queues share one."""

    def __init__(self) -> None:
        self._needs: WeakValueDictionary[tuple[object, ...], PlacementNeeds] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[tuple[object, ...], Shape] = WeakValueDictionary()

    def of(
        self,
        unit: QueuedHyperJob,
        waiting: Sequence[QueuedSubJob],
        *,
        needed: int,
        promised: Mapping[str, str] | None = None,
    ) -> Shape:
        """Return the shape of a HyperJob, some of whose sub-jobs wait.

        `promised` are the clusters of granted sub-jobs that do not exist yet.
        """
        needs = self._needs_of(unit, waiting, needed, {**(promised or {}), **unit.clusters})
        queues = tuple(part.queue for part in waiting)
        rivals = tuple(
            (self._needs_of(each, each.parts, each.minimum, {}), each.remaining)
            for each in unit.variants
        )
        key = needs, queues, rivals, unit.choice if rivals else ()  # equal needs may run longer
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(needs=needs, queues=queues, chooses=bool(rivals))
        return shape

    def _needs_of(
        self,
        unit: QueuedHyperJob,
        waiting: Sequence[QueuedSubJob],
        needed: int,
        clusters: Mapping[str, str],
    ) -> PlacementNeeds:
        names = {part.name for part in waiting}
        standing = tuple(
            sorted(
                (part.request.group, clusters[part.name])
                for part in unit.parts
                if part.name not in names and clusters.get(part.name)
            )
        )
        kinds = tuple(part.request.kind for part in waiting)
        key = needed, unit.max_domains, standing, kinds
        needs = self._needs.get(key)
        if needs is None:
            needs = self._needs[key] = PlacementNeeds(
                needed=needed,
                max_domains=unit.max_domains,
                standing=standing,
                floor=_floor(waiting, max(1, needed)),
            )
        return needs


def _floor(waiting: Sequence[QueuedSubJob], number: int) -> Resources:
    """Return a lower bound of the demand of any `number` of the sub-jobs together."""
    demands = [part.request.demand for part in waiting]
    if number >= len(demands):
        return total(demands)
    names = {name for demand in demands for name in demand}
    return {name: sum(sorted(demand.get(name, 0) for demand in demands)[:number]) for name in names}


@dataclass(frozen=True, slots=True)
class Pending:
    """The sub-jobs that a HyperJob waits for, and the line that it is in: of the first one's queue.

    They may have different queues, all of which must admit the HyperJob.
    """

    parts: tuple[QueuedSubJob, ...]
    shape: Shape
    queue: str
    order: OrderInQueue

    @property
    def requests(self) -> list[PlacementRequest]:
        """Return what the sub-jobs ask of a cluster."""
        return [part.request for part in self.parts]


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """When a HyperJob that holds a share is expected to end, and the resources that it frees.

    `by` is the source. An `overdue` HyperJob runs beyond its estimate: its end is unknown.
    """

    at: datetime
    key: str
    frees: tuple[tuple[str, Resources], ...]
    overdue: bool = False
    by: str = "its estimate"


@dataclass(slots=True)
class Turn:
    """The turn of the head of a line, from `began` on: what becomes free is kept for `head`.

    Without `head` no head has its turn, and the next turn begins at `following` at the earliest.
    `earned`: its queue has consumed less of its share than another, and what becomes free is kept
    for an hour at most. The turn of `queue`, measured in `measure`, goes on until it is ahead.
    """

    head: str = ""
    earned: bool = False
    queue: str = ""
    measure: str = ""
    began: datetime | None = None
    following: datetime | None = None


class Rank(Enum):
    """For whom others make way: a head, a head that has waited long, or a HyperJob behind it."""

    HEAD = auto()
    LATE = auto()
    BEHIND = auto()


class Victim(NamedTuple):
    """How a HyperJob makes way: it goes on with `size`, or stops as a whole if that is empty.

    `leaving` are the sub-jobs that it gives up. `why` is why it does so for one of its own queue;
    empty: another queue takes back what it lent.
    """

    size: Choice = ()
    leaving: frozenset[str] = NONE
    why: str = ""


@dataclass(slots=True)
class Eviction:
    """`victims` make way for `head`, the head of its line by its `rank` or one behind it.

    The next one starts at `until`. Without a head there is none.
    """

    head: str = ""
    victims: dict[str, Victim] = field(default_factory=dict)
    until: datetime | None = None
    rank: Rank = Rank.HEAD


class StaleMessage(NamedTuple):
    """A HyperJob whose message is out of date, and for how long it may stay so.

    A message with another reason may not stay. `news`: the HyperJob has no message, or no expected
    start in it, yet.
    """

    key: str
    wait: timedelta
    news: bool = False


@dataclass(slots=True)
class Entry:
    """The state of one HyperJob in the state of the queue engine.

    `granted` are admitted sub-jobs that no object shows yet. `reserved_clusters` are the clusters
    of the sub-jobs that do not exist yet. `holding` are the sub-jobs that hold a share of their
    queue, with their clusters; `queues` are those queues. `end` is when the HyperJob ends, if that
    is known. `written` are the facts of the message in its status since `written_at`; `refreshes`
    counts updates of the numbers only. `chosen` is why it has its alternatives. `grows` is the
    larger size that a round has granted it, at `grows_since`.
    """

    unit: QueuedHyperJob
    granted: frozenset[str] = NONE
    reserved_clusters: dict[str, str] = field(default_factory=dict)
    holding: dict[str, tuple[QueuedSubJob, str]] = field(default_factory=dict)
    queues: frozenset[str] = NONE
    end: ExpectedEnd | None = None
    waiting: Pending | None = None
    rests_until: datetime | None = None
    rests: int = 0
    reclaims: int = 0
    had_turn: bool = False
    written: MessageFacts | None = None
    written_at: datetime | None = None
    refreshes: int = 0
    chosen: Chosen | None = None
    grows: Choice = ()
    grows_since: datetime | None = None

    def take(self, unit: QueuedHyperJob) -> None:
        """Replace the HyperJob; a granted size is over once it has that or cannot have it."""
        self.unit, self.end = unit, None
        if all(each.size != self.grows for each in unit.more):
            self.grows, self.grows_since = (), None

    @property
    def frees(self) -> tuple[tuple[str, Resources], ...]:
        """Return what the end of the HyperJob frees on each cluster."""
        held = self.holding.values()
        return tuple((cluster, part.request.demand) for part, cluster in held if cluster)

    @property
    def missing(self) -> list[QueuedSubJob]:
        """Return the sub-jobs that hold a share and do not exist."""
        return [part for name, (part, _) in self.holding.items() if name not in self.unit.made]

    def cluster_of(self, name: str) -> str:
        """Return the present or reserved cluster of a sub-job, else its last one."""
        known = self.unit.clusters.get(name) or self.reserved_clusters.get(name)
        return known or (self.holding[name][1] if name in self.holding else "")

    def note_written(self, facts: MessageFacts | None, *, now: datetime) -> None:
        """Record the facts of the message that the status has from now on."""
        if facts == self.written:
            return
        alike = facts is not None and self.written is not None and facts.is_like(self.written)
        self.refreshes = self.refreshes + 1 if alike else 0
        self.written, self.written_at = facts, now

    def refresh_in(self, *, now: datetime, near: bool) -> timedelta:
        """Return how long the numbers of the message may stay stale: twice as long each time.

        The caller asks only if the numbers alone changed: a new reason is written at once. `near`:
        the HyperJob is near the head of its line.
        """
        if self.written_at is None:
            return timedelta()
        longest = _LAST_REFRESH if near else _LAST_FAR_REFRESH
        pause = doubled(_FIRST_REFRESH, self.refreshes, longest)
        return max(timedelta(), self.written_at + pause - now)


def in_its_choice(
    entry: Entry | None,
    workload: QueuedHyperJob,
    queued: Callable[[QueuedHyperJob], QueuedHyperJob],
) -> QueuedHyperJob:
    """Return a HyperJob in its queues, with the alternatives that a round has chosen, if any."""
    if not workload.variants:
        return queued(workload)
    variants = tuple(map(queued, workload.variants))
    wanted = (entry.unit.choice if entry is not None else (), workload.choice)
    known = (each for choice in wanted for each in variants if each.choice == choice)
    return replace(next(known, variants[0]), variants=variants)
