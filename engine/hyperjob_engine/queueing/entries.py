"""The entry of one HyperJob in the queue cache: its holding, its waiting part, its reservations."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from hyperjob_engine.queueing.shapes import Shape
from hyperjob_engine.queueing.units import OrderInQueue, QueuedHyperJob, QueuedSubJob
from hyperjob_engine.reasons.waiting import MessageFacts
from hyperjob_engine.resources import Resources

_FIRST_REFRESH: Final = timedelta(seconds=1)
_DOUBLINGS: Final = 6  # the numbers of a message are at most a minute old


@dataclass(frozen=True, slots=True)
class Pending:
    """The sub-jobs that a HyperJob waits for, and its queue."""

    parts: tuple[QueuedSubJob, ...]
    shape: Shape
    queue: str
    order: OrderInQueue


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """When a HyperJob that holds a share ends by its estimate, and the resources that it frees.

    An `overdue` HyperJob runs beyond its estimate: its end is unknown.
    """

    at: datetime
    key: str
    frees: tuple[tuple[str, Resources], ...]
    overdue: bool = False


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
    """The state of one HyperJob in the queue cache.

    `granted` are admitted sub-jobs that no object shows yet. `reserved_clusters` are the clusters
    of the sub-jobs that do not exist yet. `holding` are the sub-jobs that hold a share of their
    queue, with their clusters; `queues` are those queues. The end of the HyperJob, at `end` if
    known, frees `frees` on each cluster. `written` are the facts of the message in its status
    since `written_at`; `refreshes` counts updates of the numbers only.
    """

    unit: QueuedHyperJob
    granted: frozenset[str] = frozenset()
    reserved_clusters: dict[str, str] = field(default_factory=dict)
    holding: dict[str, tuple[QueuedSubJob, str]] = field(default_factory=dict)
    queues: frozenset[str] = frozenset()
    frees: tuple[tuple[str, Resources], ...] = ()
    end: ExpectedEnd | None = None
    waiting: Pending | None = None
    rests_until: datetime | None = None
    rests: int = 0
    reclaims: int = 0
    written: MessageFacts | None = None
    written_at: datetime | None = None
    refreshes: int = 0

    def hold(self, holding: dict[str, tuple[QueuedSubJob, str]]) -> None:
        """Record the sub-jobs that hold a share, with their clusters."""
        self.holding = holding
        self.queues = frozenset(part.queue for part, _ in holding.values())
        self.frees = tuple(
            (cluster, part.request.demand) for part, cluster in holding.values() if cluster
        )

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
        alike = facts is not None and self.written is not None and facts.code is self.written.code
        self.refreshes = self.refreshes + 1 if alike else 0
        self.written, self.written_at = facts, now

    def refresh_in(self, *, now: datetime) -> timedelta:
        """Return how long the numbers of the message may stay stale: twice as long each time.

        The caller asks only if the numbers alone changed: a new reason is written at once.
        """
        if self.written_at is None:
            return timedelta()
        pause = _FIRST_REFRESH * (1 << min(self.refreshes, _DOUBLINGS))
        return max(timedelta(), self.written_at + pause - now)
