"""Accelerators by cluster and queue: allocatable, used, free and waited for. Pure.

The module counts accelerators only: each member schedules cpu and memory itself. A Tally adds and
removes one HyperJob at a time: a program that watches ten thousand HyperJobs does not count all of
them at every change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from hyperjob.client.reading import is_ready
from hyperjob.client.summary import Summary
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.text import listed
from hyperjob_engine.model.wants import REPELLING
from hyperjob_engine.placement.capacity import summarise
from hyperjob_engine.resources import is_counted, parse_resources
from hyperjob_queueing.consumed import parse_consumed
from hyperjob_queueing.queues import ROOT, Tree, closed_queue, parse_queue

Key: TypeAlias = tuple[str, str]
"""The name of a cluster or a queue, and an accelerator."""
_K = TypeVar("_K")


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
    running: Counter[tuple[Key, str]] = field(default_factory=Counter)
    waiting: Counter[tuple[Key, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, summaries: Iterable[Summary]) -> "Tally":
        """Count HyperJobs."""
        tally = cls()
        for summary in summaries:
            tally.count(summary)
        return tally

    def count(self, summary: Summary, *, times: int = 1) -> None:
        """Count a HyperJob; with `times` -1, take back its count, by the same status."""
        for job, key, number in takes(summary):
            _add(self.taken, key, times * number)
            if not has_started(job):
                _add(self.reserved, key, times * number)
        for key, number, held in demands(summary):
            _add(self.waits if held else self.used, key, times * number)
            _add(self.waiting if held else self.running, (key, summary.key), times)

    @property
    def waits_for(self) -> dict[str, int]:
        """Return the accelerators that wait for a cluster or a queue, by resource."""
        found: Counter[str] = Counter()
        for (_, accelerator), number in self.waits.items():
            found[accelerator] += number
        return dict(found)

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally of other HyperJobs."""
        for name in self.__slots__:
            getattr(self, name).update(getattr(other, name))


def takes(summary: Summary) -> Iterator[tuple[JobStatus, Key, int]]:
    """Yield each unfinished sub-job on a cluster, with cluster, accelerator and their number."""
    for job in summary.placed:
        accelerator, number = summary.accelerators(job)
        if number:
            if runs_in_part(job):
                number = -(-number * job.running // job.pods)
            yield job, (job.cluster, accelerator), number


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
            yield (summary.queue_of(job), accelerator), number, waits(job)


def waits(job: JobStatus) -> bool:
    """Return whether a sub-job waits for a cluster or for its queue."""
    return not job.cluster or job.phase in ("Unplaced", "Queued", "")


def _add(counter: Counter[_K], key: _K, number: int) -> None:
    counter[key] += number
    if not counter[key]:
        del counter[key]


_UNREPORTED = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUse:
    """An accelerator of a cluster, in whole units; None where the Cluster's status has no value.

    `hyperjobs` is the sum of the sub-jobs' requests on the cluster, behind a gate too; `free` is
    that of `free_of`. `taints` are those of the Cluster that keep sub-jobs away.
    """

    cluster: str
    ready: bool
    accelerator: str
    allocatable: int | None
    used: int | None
    free: int | None
    hyperjobs: int
    taints: tuple[str, ...] = ()

    @property
    def reserved(self) -> int | None:
        """Return what is neither used nor free: for sub-jobs that have not started."""
        if self.allocatable is None or self.used is None or self.free is None:
            return None
        return max(0, self.allocatable - self.used - self.free)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUse:
    """An accelerator in a queue, in whole units.

    `share` is the queue's share of all ready clusters; None where the clusters are unknown.
    `ended` counts accelerators that Volcano Global has not released after sub-jobs ended; None
    without Volcano Global. `closed_in` are the clusters in which the queue is not Open.
    `consumed` is the average of its use by the last record; None without one.
    """

    queue: str
    state: str
    closed_in: tuple[str, ...] = ()
    accelerator: str
    share: int | None
    deserved: int | None
    capability: int | None
    used: int
    consumed: int | None = None
    ended: int | None
    waiting: int
    running_hyperjobs: int
    waiting_hyperjobs: int

    @property
    def where(self) -> str:
        """Return the state of an open queue with the clusters that have closed it."""
        if not self.closed_in or self.state != "Open":
            return self.state
        return f"{self.state}, closed in {listed(self.closed_in)}"


def clusters(found: Sequence[Object], tally: Tally) -> list[ClusterUse]:
    """Count accelerators by cluster; sub-jobs on a cluster without a Cluster count nowhere."""
    named: dict[str, set[str]] = {}
    for name, accelerator in tally.taken:
        named.setdefault(name, set()).add(accelerator)
    result = []
    for cluster in sorted(found, key=lambda item: str(item["metadata"]["name"])):
        result += _uses_of(cluster, tally, named)
    return result


def queues(
    found: Sequence[Object],
    tally: Tally,
    *,
    readable: bool = True,
    totals: Mapping[str, int] | None = None,
    ended: Mapping[Key, int] | None = None,
    bindings: Iterable[Object] = (),
) -> list[QueueUse]:
    """Count accelerators by queue, including idle queues and queues that do not exist.

    `totals` is the capacity of all ready clusters (`all_ready`), of which each queue has its share.
    `ended` are the accelerators that Volcano Global counts for ended sub-jobs (`held_by_ended`);
    None without its queue admission. A parent queue includes the use of its children. `bindings`
    are the ClusterResourceBindings, which have the state of a Queue in each cluster.
    """
    known = {str(item["metadata"]["name"]): item for item in found}
    there = totals or {}
    tree = tree_of(found, there)
    used, waits = _upwards(tally.used, tree), _upwards(tally.waits, tree)
    running_jobs = _named_upwards(tally.running, tree)
    waiting_jobs = _named_upwards(tally.waiting, tree)
    closed = {each.name: each for each in map(closed_queue, bindings) if each is not None}
    keys = {*used, *waits, *(ended or ())}
    for name in known:
        keys |= {(name, each) for each in there} or {(name, "")}
    return [
        QueueUse(
            queue=queue,
            state=_queue_state_text(known.get(queue), readable=readable),
            closed_in=tuple(sorted(closed[queue].clusters)) if queue in closed else (),
            accelerator=accelerator,
            share=_whole(tree.entitled(accelerator), queue) if there else None,
            deserved=_amount(known.get(queue), "deserved", accelerator),
            capability=_amount(known.get(queue), "capability", accelerator),
            used=used[queue, accelerator],
            consumed=_consumed(known.get(queue), accelerator),
            ended=None if ended is None else ended.get((queue, accelerator), 0),
            waiting=waits[queue, accelerator],
            running_hyperjobs=len(running_jobs.get((queue, accelerator), ())),
            waiting_hyperjobs=len(waiting_jobs.get((queue, accelerator), ())),
        )
        for queue, accelerator in sorted(keys)
        if queue != ROOT
    ]


def tree_of(found: Iterable[Object], totals: Mapping[str, int]) -> Tree:
    """Return the queue tree with each queue's share of all ready clusters."""
    return Tree(map(parse_queue, found), {name: each * NANO for name, each in totals.items()})


def _upwards(counts: Mapping[Key, int], tree: Tree) -> Counter[Key]:
    """Return the counts, each also added to all parents of its queue."""
    found: Counter[Key] = Counter()
    for (queue, accelerator), number in counts.items():
        for each in tree.path(queue)[1:] or (queue,):
            found[each, accelerator] += number
    return found


def _named_upwards(names: Iterable[tuple[Key, str]], tree: Tree) -> dict[Key, set[str]]:
    """Return the names, each also at all parents of its queue."""
    found: dict[Key, set[str]] = {}
    for (queue, accelerator), name in names:
        for each in tree.path(queue)[1:] or (queue,):
            found.setdefault((each, accelerator), set()).add(name)
    return found


def all_ready(uses: Iterable[ClusterUse]) -> dict[str, int]:
    """Return the allocatable number of each accelerator, summed over ready clusters."""
    found: Counter[str] = Counter()
    for use in uses:
        if use.accelerator and use.ready:
            found[use.accelerator] += use.allocatable or 0
    return dict(found)


def held_by_ended(summaries: Iterable[Summary], bindings: Iterable[Object]) -> Counter[Key]:
    """Count accelerators of ended sub-jobs whose ResourceBinding still takes quota."""
    taking = {
        (string(at(raw, "metadata", "namespace")), string(at(raw, "metadata", "name")))
        for raw in bindings
        if at(raw, "spec", "suspension", "scheduling") is not True
        and mapping(at(raw, "spec", "replicaRequirements", "resourceRequest"))
    }
    found: Counter[Key] = Counter()
    for summary in summaries:
        for job in summary.jobs:
            accelerator, number = summary.accelerators(job)
            if number and job.has_ended and (summary.namespace, binding_name(job.name)) in taking:
                found[summary.queue_of(job), accelerator] += number
    return found


def free_of(total: int, used: int, *, running: int, reserved: int) -> int:
    """Return what is free of `total`, of which the Cluster's status counts `used` as taken.

    The status is late, and counts `running` of HyperJobs and other work, but not what is `reserved`
    for sub-jobs that have not started.
    """
    return max(0, total - max(used, running) - reserved)


def _uses_of(cluster: Object, tally: Tally, named: Mapping[str, set[str]]) -> list[ClusterUse]:
    """Count the accelerators of a cluster: those that it reports, and `named` ones of sub-jobs.

    A cluster without any has one empty entry.
    """
    name = str(cluster["metadata"]["name"])
    room = summarise(cluster)
    taints = tuple(
        f"{string(taint.get('key'))}:{string(taint.get('effect'))}"
        for taint in objects(at(cluster, "spec", "taints"))
        if string(taint.get("effect")) in REPELLING
    )
    names = {key for key in room.allocatable if is_counted(key)} | named.get(name, set())
    result = []
    for accelerator in sorted(names) or [""]:
        reported = accelerator in room.allocatable
        whole = room.allocatable.get(accelerator, 0)
        total, used = whole // NANO, (whole - room.free.get(accelerator, 0)) // NANO
        held, reserved = tally.taken[name, accelerator], tally.reserved[name, accelerator]
        free = free_of(total, used, running=held - reserved, reserved=reserved)
        result.append(
            ClusterUse(
                cluster=name,
                ready=is_ready(cluster),
                accelerator=accelerator,
                allocatable=total if reported else None,
                used=used if reported else None,
                free=free if reported else None,
                hyperjobs=held,
                taints=taints,
            )
        )
    return result


def _queue_state_text(queue: Object | None, *, readable: bool) -> str:
    if queue is None:
        return "missing" if readable else _UNREPORTED
    return string(at(queue, "status", "state")) or "without a state"


def _amount(queue: Object | None, field: str, accelerator: str) -> int | None:
    """Return a queue's amount of an accelerator in whole units; None where its spec has none."""
    amounts = parse_resources(at(queue or {}, "spec", field))
    return amounts[accelerator] // NANO if accelerator in amounts else None


def _consumed(queue: Object | None, accelerator: str) -> int | None:
    found = parse_consumed(queue or {})
    return None if found is None else round(found.resources.get(accelerator, 0) / NANO)


def _whole(amounts: Mapping[str, int] | None, name: str) -> int | None:
    """Return the amount of a resource in whole units; None where it is absent."""
    return None if amounts is None or name not in amounts else amounts[name] // NANO
