"""A HyperJob as queue admission sees it: its sub-jobs, who holds a share, who waits.

Keeps no template: ten thousand of them wait at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from controller.model.request import Request

OrderInQueue: TypeAlias = tuple[int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedSubJob:
    """One sub-job."""

    queue: str
    request: Request
    piece: bool = False  # of an automatic split, whose sub-jobs are sized when it is admitted
    grows: bool = False  # what a sub-job that runs is to have more of

    @property
    def name(self) -> str:
        """Return the sub-job's name."""
        return self.request.name


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedHyperJob:
    """One HyperJob that has not ended; `made` are sub-jobs that exist, `clusters` where they are.

    `held` are those that hold a share of their queue, made or about to be made again. `preempts`:
    it may stop HyperJobs of lower priority; `since` is when it started last, RFC 3339. `kept` is
    until when its work would be kept if it stopped now, where its programs say so: it changes with
    each checkpoint and decides nothing but who makes way.
    `estimate` is how long it runs, as its templates estimate.
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
        """Return its place among those of its queue: priority, then age."""
        return order_in_queue(priority=self.priority, created=self.created, key=self.key)


def order_in_queue(*, priority: int, created: str, key: str) -> OrderInQueue:
    """Return what those of one queue are sorted by: higher priority first, then the older.

    Volcano Global sorts the vcjobs of a queue by the same.
    """
    return -priority, created, key
