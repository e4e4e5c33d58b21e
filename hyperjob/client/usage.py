"""Accelerators by cluster and by queue: what there is, what runs, what waits. Pure.

Only what accelerates is counted: cpu and memory are every cluster's own affair.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.model.parse import condition
from controller.model.resources import is_extended, parse_resources
from controller.model.wire import at, mapping, string
from controller.queueing.queues import ROOT, Tree, parse_queue
from hyperjob.api.meta import Object
from hyperjob.api.names import binding_name
from hyperjob.api.quantity import NANO
from hyperjob.client.summary import SubJob, Summary

_UNREPORTED = "?"
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUse:
    """One accelerator of a cluster, in whole units; None where the cluster reports nothing.

    `hyperjobs` is what sub-jobs on it take by their own accounts, those held by a gate included.
    """

    cluster: str
    ready: bool
    accelerator: str
    allocatable: int | None
    used: int | None
    free: int | None
    hyperjobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUse:
    """One accelerator in a queue, in whole units.

    `share` is what the queue is entitled to of all ready clusters; None where they are not known.
    `ended` is what Volcano Global still counts of sub-jobs that have ended; None without it.
    """

    queue: str
    state: str
    accelerator: str
    share: int | None
    deserved: int | None
    capability: int | None
    used: int
    ended: int | None
    waiting: int
    running_hyperjobs: int
    waiting_hyperjobs: int


def clusters(found: Sequence[Object], summaries: Iterable[Summary]) -> list[ClusterUse]:
    """Count accelerators by cluster, those of lost clusters too."""
    taken: dict[tuple[str, str], int] = {}
    for summary in summaries:
        for job in summary.jobs:
            accelerator, number = summary.accelerators(job)
            if number and job.cluster and not job.has_ended:
                key = job.cluster, accelerator
                taken[key] = taken.get(key, 0) + number
    result = []
    for cluster in sorted(found, key=lambda item: str(item["metadata"]["name"])):
        result += _cluster(cluster, taken)
    return result


def queues(
    found: Sequence[Object],
    summaries: Sequence[Summary],
    *,
    readable: bool = True,
    totals: Mapping[str, int] | None = None,
    counted: Sequence[Object] | None = None,
) -> list[QueueUse]:
    """Count accelerators by queue, idle queues and queues that do not exist included.

    `totals` is what all ready clusters have (`all_ready`), of which each queue has its share.
    `counted` are the ResourceBindings that Volcano Global counts; None where it admits nothing. A
    parent queue counts what its children use.
    """
    known = {str(item["metadata"]["name"]): item for item in found}
    there = totals or {}
    tree = Tree(map(parse_queue, found), {name: each * NANO for name, each in there.items()})
    used: Counter[_Key] = Counter()
    waits: Counter[_Key] = Counter()
    ended = _ended(summaries, counted)
    running_jobs: dict[_Key, set[str]] = {}
    waiting_jobs: dict[_Key, set[str]] = {}
    for summary in summaries:
        if summary.has_ended or summary.deleting:
            continue
        for (queue, accelerator), number, held in _demands(summary):
            amounts, names = (waits, waiting_jobs) if held else (used, running_jobs)
            for each in tree.path(queue)[1:] or (queue,):
                amounts[each, accelerator] += number
                names.setdefault((each, accelerator), set()).add(summary.key)
    keys = {*used, *waits, *(ended or ())}
    for name in known:
        keys |= {(name, each) for each in there} or {(name, "")}
    return [
        QueueUse(
            queue=queue,
            state=_queue_state(known.get(queue), readable=readable),
            accelerator=accelerator,
            share=_whole(tree.entitled.get(queue), accelerator) if there else None,
            deserved=_amount(known.get(queue), "deserved", accelerator),
            capability=_amount(known.get(queue), "capability", accelerator),
            used=used[queue, accelerator],
            ended=None if ended is None else ended[queue, accelerator],
            waiting=waits[queue, accelerator],
            running_hyperjobs=len(running_jobs.get((queue, accelerator), ())),
            waiting_hyperjobs=len(waiting_jobs.get((queue, accelerator), ())),
        )
        for queue, accelerator in sorted(keys)
        if queue != ROOT
    ]


def all_ready(uses: Iterable[ClusterUse]) -> dict[str, int]:
    """Sum what ready clusters have of each accelerator."""
    found: Counter[str] = Counter()
    for use in uses:
        if use.accelerator and use.ready:
            found[use.accelerator] += use.allocatable or 0
    return dict(found)


def _ended(
    summaries: Sequence[Summary], counted: Sequence[Object] | None
) -> "Counter[_Key] | None":
    """Count accelerators of ended sub-jobs whose ResourceBinding still takes quota."""
    if counted is None:
        return None
    taking = {
        (string(at(raw, "metadata", "namespace")), string(at(raw, "metadata", "name")))
        for raw in counted
        if at(raw, "spec", "suspension", "scheduling") is not True
        and mapping(at(raw, "spec", "replicaRequirements", "resourceRequest"))
    }
    found: Counter[_Key] = Counter()
    for summary in summaries:
        for job in summary.jobs:
            accelerator, number = summary.accelerators(job)
            if number and job.has_ended and (summary.namespace, binding_name(job.name)) in taking:
                group = summary.group(job.group)
                found[group.queue if group else "default", accelerator] += number
    return found


def waiting(summaries: Iterable[Summary]) -> dict[str, int]:
    """Count the accelerators that wait for a cluster or a queue, by resource."""
    found: dict[str, int] = {}
    for summary in summaries:
        if summary.has_ended or summary.deleting:
            continue
        for (_, accelerator), number, waits in _demands(summary):
            if waits:
                found[accelerator] = found.get(accelerator, 0) + number
    return found


def _cluster(cluster: Object, taken: Mapping[tuple[str, str], int]) -> list[ClusterUse]:
    name = str(cluster["metadata"]["name"])
    status = mapping(cluster.get("status"))
    ready = condition(status, "Ready").get("status") == "True"
    summary = mapping(status.get("resourceSummary"))
    there, *parts = (
        parse_resources(summary.get(part)) for part in ("allocatable", "allocated", "allocating")
    )
    names = {key for key in there if is_extended(key)} | {key for at_, key in taken if at_ == name}
    result = []
    for accelerator in sorted(names) or [""]:
        reported = accelerator in there
        used = sum(part.get(accelerator, 0) for part in parts) // NANO
        total = there.get(accelerator, 0) // NANO
        result.append(
            ClusterUse(
                cluster=name,
                ready=ready,
                accelerator=accelerator,
                allocatable=total if reported else None,
                used=used if reported else None,
                free=total - used if reported else None,
                hyperjobs=taken.get((name, accelerator), 0),
            )
        )
    return result


def _demands(summary: Summary) -> Iterable[tuple[tuple[str, str], int, bool]]:
    """Give queue and accelerator, how many, and whether they wait, for each living sub-job."""
    if not summary.jobs:
        for group in summary.groups:
            if group.accelerator and not summary.suspend:
                yield (group.queue, group.accelerator), group.size, True
    for job in summary.jobs:
        accelerator, number = summary.accelerators(job)
        if number and not job.has_ended and not (summary.suspend and not job.cluster):
            found = summary.group(job.group)
            yield (found.queue if found else "default", accelerator), number, _waits(job)


def _waits(job: SubJob) -> bool:
    return not job.cluster or job.phase in ("Unplaced", "Queued", "")


def _queue_state(queue: Object | None, *, readable: bool) -> str:
    if queue is None:
        return "missing" if readable else _UNREPORTED
    return string(at(queue, "status", "state")) or "without a state"


def _amount(queue: Object | None, field: str, accelerator: str) -> int | None:
    """Give what a queue's spec says of an accelerator, in whole units; None where it does not."""
    amounts = parse_resources(at(queue or {}, "spec", field))
    return amounts[accelerator] // NANO if accelerator in amounts else None


def _whole(amounts: Mapping[str, int] | None, name: str) -> int | None:
    """Give an amount in whole units; None where there is none."""
    return None if amounts is None or name not in amounts else amounts[name] // NANO
