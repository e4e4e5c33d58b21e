"""Count the accelerators that HyperJobs use or wait for, by cluster and by queue. Pure.

A Tally adds and removes one HyperJob at a time: a program that watches ten thousand HyperJobs does
not count all of them at every change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from hyperjob.client.summary import Summary
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus

Key: TypeAlias = tuple[str, str]
"""The name of a cluster or a queue, and an accelerator."""


@dataclass(slots=True)
class Tally:
    """Accelerators in whole units; `running` and `waiting` name HyperJobs as namespace/name.

    `taken` and its part `reserved`, of sub-jobs that have not started, are by cluster; the other
    counts are by queue, without parent queues.
    """

    taken: Counter[Key] = field(default_factory=Counter)
    reserved: Counter[Key] = field(default_factory=Counter)
    used: Counter[Key] = field(default_factory=Counter)
    waits: Counter[Key] = field(default_factory=Counter)
    running: dict[Key, dict[str, None]] = field(default_factory=dict)
    waiting: dict[Key, dict[str, None]] = field(default_factory=dict)

    @classmethod
    def of(cls, summaries: Iterable[Summary]) -> "Tally":
        """Count HyperJobs."""
        tally = cls()
        for summary in summaries:
            tally.add(summary)
        return tally

    def add(self, summary: Summary) -> None:
        """Count a HyperJob that is not counted yet."""
        for key, number, started in takes(summary):
            self.taken[key] += number
            if not started:
                self.reserved[key] += number
        for key, number, held in demands(summary):
            (self.waits if held else self.used)[key] += number
            names = self.waiting if held else self.running
            names.setdefault(key, {})[summary.key] = None

    def remove(self, summary: Summary) -> None:
        """Subtract a HyperJob, given with the same status as when it was added."""
        for key, number, started in takes(summary):
            _less(self.taken, key, number)
            if not started:
                _less(self.reserved, key, number)
        for key, number, held in demands(summary):
            _less(self.waits if held else self.used, key, number)
            names = self.waiting if held else self.running
            if key in names:
                names[key].pop(summary.key, None)
                if not names[key]:
                    del names[key]

    @property
    def waits_for(self) -> dict[str, int]:
        """Return the accelerators that wait for a cluster or a queue, by resource."""
        found: Counter[str] = Counter()
        for (_, accelerator), number in self.waits.items():
            found[accelerator] += number
        return dict(found)

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally of other HyperJobs."""
        self.taken.update(other.taken)
        self.reserved.update(other.reserved)
        self.used.update(other.used)
        self.waits.update(other.waits)
        for mine, theirs in ((self.running, other.running), (self.waiting, other.waiting)):
            for key, names in theirs.items():
                mine.setdefault(key, {}).update(names)


def takes(summary: Summary) -> Iterator[tuple[Key, int, bool]]:
    """Yield the accelerators of unfinished sub-jobs on clusters, and whether each has started."""
    for job in summary.jobs:
        accelerator, number = summary.accelerators(job)
        if number and job.cluster and not job.has_ended:
            if runs_in_part(job):
                number = -(-number * job.running // job.pods)
            yield (job.cluster, accelerator), number, has_started(job)


def runs_in_part(job: JobStatus) -> bool:
    """Return whether a sub-job runs with fewer than all of its pods, as its minAvailable allows."""
    return JobPhase(job.phase) is JobPhase.RUNNING and 0 < job.running < job.pods


def has_started(job: JobStatus) -> bool:
    """Return whether a sub-job is in its cluster, not only placed or held by a gate."""
    return JobPhase(job.phase) is not JobPhase.UNKNOWN


def demands(summary: Summary) -> Iterator[tuple[Key, int, bool]]:
    """Yield for each unfinished sub-job queue and accelerator, the number, and whether it waits."""
    if summary.has_ended or summary.deleting:
        return
    if not summary.suspend:
        for group in summary.without_sub_jobs:
            if group.accelerator:
                yield (group.queue, group.accelerator), group.whole, True
    for job in summary.jobs:
        accelerator, number = summary.accelerators(job)
        if number and not job.has_ended and not (summary.suspend and not job.cluster):
            found = summary.group(job.replicated_job)
            yield (found.queue if found else "default", accelerator), number, waits(job)


def waits(job: JobStatus) -> bool:
    """Return whether a sub-job waits for a cluster or for its queue."""
    return not job.cluster or job.phase in ("Unplaced", "Queued", "")


def _less(counter: Counter[Key], key: Key, number: int) -> None:
    counter[key] -= number
    if not counter[key]:
        del counter[key]
