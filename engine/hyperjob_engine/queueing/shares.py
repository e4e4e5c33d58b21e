"""The usage of the queues of the present mode, by sub-jobs of HyperJobs and by other workloads.

The queue cache adds and removes the sub-jobs.
"""

from collections.abc import Iterable, Mapping, Sequence

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.queueing.account import QueueUsage
from hyperjob_engine.queueing.confirm import Confirmer, Holds
from hyperjob_engine.queueing.entries import Entry
from hyperjob_engine.queueing.lines import Lines
from hyperjob_engine.queueing.queues import Queue, Tree
from hyperjob_engine.queueing.units import QueuedSubJob
from hyperjob_engine.resources import Resources, total


class Shares:
    """The account of the queues, rebuilt when a Queue or the clusters' total changes."""

    def __init__(self, confirmer: Confirmer, lines: Lines) -> None:
        self._lines = lines
        self.account = QueueUsage(Tree((), {}))
        self.queues: tuple[Queue, ...] = ()
        self._confirmer = confirmer
        self._listed: tuple[Queue, ...] = ()
        self._others: Mapping[str, Resources] = {}
        self._total: Resources = {}

    def set_queues(self, queues: Iterable[Queue], entries: Iterable[Entry]) -> None:
        """Replace all Queue objects and rebuild the account."""
        self._listed = tuple(queues)
        self.queues = tuple(self._confirmer.queues(self._listed, ()))
        self._open(entries)

    def renew(self, clusters: Sequence[Cluster], holds: Holds, entries: Iterable[Entry]) -> None:
        """Update the clusters' total and the usage of other workloads."""
        capacity = total(cluster.allocatable for cluster in clusters if cluster.usable)
        queues = tuple(self._confirmer.queues(self._listed, clusters))
        others = self._confirmer.others(holds)
        if capacity != self._total or queues != self.queues:
            self._total, self.queues, self._others = capacity, queues, others
            self._open(entries)
        elif others != self._others:
            self._count_others(-1)
            self._others = others
            self._count_others(1)

    def count(self, part: QueuedSubJob, sign: int = 1) -> None:
        """Add a sub-job that holds a share to the account, or with -1 remove it."""
        self.account.add(part.queue, part.request.demand, sign)

    def _open(self, entries: Iterable[Entry]) -> None:
        self.account = QueueUsage(Tree(self.queues, self._total))
        self._count_others(1)
        for entry in entries:
            for part, _ in entry.holding.values():
                self.count(part)
        self._lines.changed.update(self._lines.queues())

    def _count_others(self, sign: int) -> None:
        for queue, used in self._others.items():
            self.account.add(queue, used, sign)
        self._lines.changed.update(queue for queue in self._others if self._lines.line(queue))
