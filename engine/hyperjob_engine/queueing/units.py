"""A HyperJob in the queue engine: its sub-jobs, which of them hold a share and which wait.

The values hold no template, to save memory: ten thousand HyperJobs may wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from hyperjob_engine.model.request import PlacementRequest

OrderInQueue: TypeAlias = tuple[int, str, str]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedHyperJob:
    """One HyperJob that has not ended; `made` are its existing sub-jobs, on `clusters`.

    `held` are the sub-jobs that hold a share of their queue, existing or about to be recreated.
    `preempts`: it may stop HyperJobs of lower priority. `since` is its last start, RFC 3339. `kept`
    is the time up to which its work is saved, empty if unknown: it changes with each checkpoint and
    matters only to the choice of HyperJobs that make way. `estimate` is its estimated running time.
    """

    key: str
    created: str = ""
    priority: int = 0
    minimum: int
    max_domains: int | None = None
    parts: tuple[QueuedSubJob, ...]
    held: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    clusters: Mapping[str, str] = field(default_factory=dict)
    preempts: bool = True
    since: str = ""
    kept: str = field(default="", compare=False)
    estimate: timedelta | None = None

    @property
    def order(self) -> OrderInQueue:
        """Return the sort key of the HyperJob in its line: priority, then age."""
        return order_in_queue(priority=self.priority, created=self.created, key=self.key)


def order_in_queue(*, priority: int, created: str, key: str) -> OrderInQueue:
    """Return the sort key in a line: higher priority first, then the older HyperJob.

    Volcano Global sorts the vcjobs of a queue in the same order.
    """
    return -priority, created, key
