"""What the queue cache knows of one HyperJob: what it holds, what it waits for, what is reserved.

Values only.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from controller.model.resources import Resources
from controller.model.waiting import MessageFacts
from controller.queueing.shapes import Shape
from controller.queueing.units import OrderInQueue, QueuedHyperJob, QueuedSubJob

_FIRST_REFRESH: Final = timedelta(seconds=1)
_DOUBLINGS: Final = 6  # numbers of a message are a minute old at most


@dataclass(frozen=True, slots=True)
class Pending:
    """The sub-jobs that a HyperJob waits for, and its queue."""

    parts: tuple[QueuedSubJob, ...]
    shape: Shape
    queue: str
    order: OrderInQueue


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """When a HyperJob that holds a share ends by its estimate, and what that frees by cluster.

    An `overdue` one runs beyond its estimate: nothing is known of its end.
    """

    at: datetime
    key: str
    frees: tuple[tuple[str, Resources], ...]
    overdue: bool = False


class StaleMessage(NamedTuple):
    """A HyperJob whose message is out of date, and how long that may wait.

    It may not wait at all where the HyperJob waits for something else now. `news` is a first
    message, or the first time that a start is expected.
    """

    key: str
    wait: timedelta
    news: bool = False


@dataclass(slots=True)
class Entry:
    """What is known of one HyperJob.

    `granted` are sub-jobs that the engine admitted and that no object shows yet. The clusters of
    `reserved_clusters` are reserved for sub-jobs that do not exist yet. `holding` are the sub-jobs
    that hold a share of their queue, with their clusters, `queues` those queues. When the HyperJob
    ends, at `end` if known, each cluster has `frees` free again. `written` are the facts of the
    message in its status since `written_at`; `refreshes` counts changes of its numbers alone.
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
        """Note which sub-jobs hold a share, and where."""
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
        """Return where a sub-job is or will be; its last cluster while no object shows one."""
        known = self.unit.clusters.get(name) or self.reserved_clusters.get(name)
        return known or (self.holding[name][1] if name in self.holding else "")

    def note_written(self, facts: MessageFacts | None, *, now: datetime) -> None:
        """Note what the status says from now on."""
        if facts == self.written:
            return
        alike = facts is not None and self.written is not None and facts.code is self.written.code
        self.refreshes = self.refreshes + 1 if alike else 0
        self.written, self.written_at = facts, now

    def refresh_in(self, *, now: datetime) -> timedelta:
        """Return how long numbers of its message may be stale: twice as long every time.

        What it waits for is never stale: the caller asks only where numbers alone changed.
        """
        if self.written_at is None:
            return timedelta()
        pause = _FIRST_REFRESH * (1 << min(self.refreshes, _DOUBLINGS))
        return max(timedelta(), self.written_at + pause - now)
