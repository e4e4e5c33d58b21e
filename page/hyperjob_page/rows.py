"""The data of each HyperJob in memory: summary, accelerators, place in its queue. Pure."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hyperjob.client.summary import Summary, read
from hyperjob.client.usage import Key, has_started, takes, waits
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import ARGUMENTS
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import JobStatus, Run
from hyperjob_core.api.wire import at, mapping, string, string_map
from hyperjob_core.text import shortened
from hyperjob_engine.reasons.reason import NEVER_RUNS, Reason
from hyperjob_page.visitor import Scope
from hyperjob_queueing.queues import value_of
from hyperjob_queueing.workload import OrderInQueue, has_made_way

_LONGEST: Final = 4096
"""The letters of the arguments of a program; the controller bounds the texts of the status."""
_FAILURES: Final = 50
_BAD_ENDS: Final = frozenset(
    {Reason.JOBS_FAILED, Reason.JOB_FAILED, Reason.CLUSTER_LOST, Reason.OBJECT_DELETED}
)
_NOT_IN_LINE: Final = (NEVER_RUNS - {Reason.INVALID_QUEUE}) | {
    Reason.WAITING_FOR_DEPENDENCY,
    Reason.GANG_BACK_OFF,
    Reason.NAME_CONFLICT,
    Reason.REFUSED,
    Reason.FAILED_CREATE,
    Reason.BEING_DELETED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A HyperJob; `search` is the text for searches, in lower case.

    `waits_in` is the queue in which the HyperJob waits, else empty. `accelerators` are the numbers
    by resource, summed over all sub-jobs. `version`
    changes with each change of the HyperJob.
    """

    summary: Summary
    labels: Mapping[str, str]
    queues: tuple[str, ...]
    waits_in: str
    accelerators: Mapping[str, int]
    search: str
    version: str
    started: str = ""
    ended: str = ""

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return self.summary.key


def row_of(hyperjob: Object) -> Row:
    """Return the row of a HyperJob, of whose annotations it keeps the arguments alone."""
    summary, status = read(hyperjob), mapping(hyperjob.get("status"))
    arguments = shortened(summary.annotations.get(ARGUMENTS, ""), _LONGEST)
    summary = replace(summary, annotations={ARGUMENTS: arguments})
    labels = string_map(mapping(hyperjob.get("metadata")).get("labels"))
    words = [summary.key, summary.reason, *summary.clusters]
    words += [f"{name}={value}" for name, value in labels.items()]
    return Row(
        summary=summary,
        labels=labels,
        queues=tuple(dict.fromkeys(group.queue for group in summary.groups)),
        waits_in=_line_of(summary),
        accelerators=_accelerators(summary),
        search=" ".join(words).lower(),
        started=string(status.get("startTime")),
        ended=string(status.get("completionTime")),
        version=f"{summary.uid}/{string(at(hyperjob, 'metadata', 'resourceVersion'))}",
    )


def failures(summary: Summary) -> list[tuple[JobStatus, Run]]:
    """Return the failed runs with their sub-jobs, with the present ones, the latest first."""
    found = [
        (job, run)
        for job in summary.jobs
        for run in job.history
        if run.failure is not None or run.reason in _BAD_ENDS
    ]
    found += [
        # The sub-job ends later than its container.
        (job, replace(run, end=run.failure.time))
        for job in summary.jobs
        if (run := job.failed_run) is not None and run.failure is not None
    ]
    return sorted(found, key=lambda each: each[1].end, reverse=True)[:_FAILURES]


def order_of(row: Row, classes: Mapping[str, Object]) -> OrderInQueue:
    """Return the sort key of a HyperJob in its queue, as the engine has it."""
    names = {group.priority_class for group in row.summary.groups}
    priority = max((value_of(name, classes) for name in names), default=0)
    again = has_made_way(row.summary.jobs)
    return OrderInQueue(-priority, again, row.summary.created, row.key)


def _line_of(summary: Summary) -> str:
    """Return the queue in which a HyperJob waits, else an empty text."""
    if summary.has_ended or summary.deleting or summary.suspend:
        return ""
    if summary.reason in _NOT_IN_LINE:
        return ""
    if not summary.jobs:
        return summary.groups[0].queue if summary.groups else ""
    if summary.phase not in (Phase.PENDING, Phase.QUEUED):
        return ""
    for job in summary.jobs:
        if not job.has_ended and waits(job) and job.reason not in _NOT_IN_LINE:
            return summary.queue_of(job)
    return ""


def _accelerators(summary: Summary) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for job in summary.jobs:
        name, number = summary.accelerators(job)
        if number:
            found[name] = found.get(name, 0) + number
    for group in summary.without_sub_jobs:
        if group.accelerator:
            found[group.accelerator] = found.get(group.accelerator, 0) + group.whole
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The number of an accelerator that a HyperJob, `key`, has on a cluster."""

    key: str
    queue: str
    running: int
    reserved: int


class Holdings:
    """All parts, by cluster and accelerator."""

    def __init__(self) -> None:
        self._parts: dict[Key, dict[str, Holding]] = {}
        self._where: dict[str, Sequence[Key]] = {}
        self.versions: Counter[str] = Counter()
        """Counts changes by cluster."""

    def change(self, key: str, row: Row | None) -> None:
        """Apply a change of a HyperJob; None after its deletion."""
        parts = parts_of(row) if row is not None else {}
        before = {where: self._parts[where][key] for where in self._where.get(key, ())}
        if parts == before:
            return
        for where in before:
            self.versions[where[0]] += 1
            del self._parts[where][key]
        for where, part in parts.items():
            self.versions[where[0]] += 1
            self._parts.setdefault(where, {})[key] = part
        self._where[key] = tuple(parts)
        if not parts:
            del self._where[key]

    def at(self, where: Key, scope: Scope) -> list[Holding]:
        """Return the parts of a cluster and an accelerator, of HyperJobs that a visitor may see."""
        there = self._parts.get(where, {})
        return [part for key, part in there.items() if scope.includes(key.partition("/")[0])]


def parts_of(row: Row) -> dict[Key, Holding]:
    """Return the parts of a HyperJob by cluster and accelerator."""
    found: dict[Key, Holding] = {}
    for job, where, number in takes(row.summary):
        before = found.get(where)
        runs = number if has_started(job) else 0
        found[where] = Holding(
            key=row.key,
            queue=row.summary.queue_of(job),
            running=runs + (before.running if before else 0),
            reserved=number - runs + (before.reserved if before else 0),
        )
    return found


class QueueLines:
    """The waiting HyperJobs by queue; `classes` are the PriorityClasses by name, for the order."""

    def __init__(self) -> None:
        self.classes: Mapping[str, Object] = {}
        self._lines: dict[str, list[OrderInQueue]] = {}
        self._waiting: dict[str, tuple[str, OrderInQueue]] = {}

    def change(self, key: str, row: Row | None) -> None:
        """Apply a change of a HyperJob; None after its deletion."""
        before = self._waiting.pop(key, None)
        if before is not None:
            queue, order = before
            line = self._lines[queue]
            del line[bisect_left(line, order)]
            if not line:
                del self._lines[queue]
        if row is not None and row.waits_in:
            order = order_of(row, self.classes)
            insort(self._lines.setdefault(row.waits_in, []), order)
            self._waiting[key] = row.waits_in, order

    def place(self, key: str) -> int:
        """Return the place of a HyperJob in its queue, from 1; 0 if it does not wait."""
        found = self._waiting.get(key)
        if found is None:
            return 0
        queue, order = found
        return bisect_left(self._lines[queue], order) + 1

    def length(self, queue: str) -> int:
        """Return the number of HyperJobs that wait in a queue."""
        return len(self._lines.get(queue, ()))

    def line(self, queue: str) -> Sequence[OrderInQueue]:
        """Return the waiting HyperJobs of a queue in order; each ends with namespace/name."""
        return self._lines.get(queue, ())
