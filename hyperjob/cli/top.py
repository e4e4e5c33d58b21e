"""`hyperjob top`: accelerators by cluster and by queue."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

import click
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import run
from hyperjob.client import usage
from hyperjob.client.errors import words
from hyperjob.client.reading import Reading, items, lease, listed
from hyperjob.client.summary import Summary, read
from hyperjob.client.training import sizes_text
from hyperjob.client.usage import ClusterUse, QueueUse, Tally, runs_in_part
from hyperjob.table import Row, table
from hyperjob_core.api.leader import Leader, leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, KubeError
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    HYPERJOBS,
    QUEUES,
    RESOURCE_BINDINGS,
)
from hyperjob_core.text import listed as in_words

_VOLCANO_GLOBAL: Final = "volcano-global"


@click.command()
@access()
@click.option(
    "--by",
    type=click.Choice(["cluster", "queue"]),
    default=None,
    help="Print only this table.  [default: both]",
)
@out.output(out.JSON)
def top(access: Access, by: str | None, form: str) -> None:
    """Show the accelerators that clusters have, use and have free, and the use of each queue.

    HYPERJOBS counts the accelerators of sub-jobs on a cluster, in all namespaces; with -n, or
    where you may list one namespace only, in that namespace. SHARE is the share of a queue, USED
    the accelerators of its sub-jobs that are placed or run, WAITING those of its other sub-jobs.
    ENDED, beside Volcano Global, counts the accelerators that Volcano Global has not released
    after sub-jobs ended. RUN and WAIT count HyperJobs. A parent queue includes the use of its
    children.

    Example: kubectl hyperjob top --by cluster
    """

    async def show() -> None:
        async with access.connect() as kube:
            await _tables(kube, access, by, form)

    run(show())


async def _tables(kube: Kube, access: Access, by: str | None, form: str) -> None:
    """Print the table of clusters and that of queues, or only the one of `by`."""
    hyperjobs, clusters, queues, bindings, leases = await asyncio.gather(
        _hyperjobs(kube, access),
        listed(kube, CLUSTERS),
        listed(kube, QUEUES),
        listed(kube, CLUSTER_RESOURCE_BINDINGS),
        lease(kube),
    )
    summaries = [read(item) for item in hyperjobs]
    tally, leader = Tally.of(summaries), leader_from(leases, now=datetime.now(UTC))
    counted: Reading | None = None
    if leader is not None and leader.admission == _VOLCANO_GLOBAL and by != "cluster":
        counted = await listed(kube, RESOURCE_BINDINGS)
    for reading in (clusters, queues, bindings, counted):
        if isinstance(reading, KubeError):
            out.remark(words(reading))
    uses = usage.clusters(items(clusters), tally)
    by_cluster = None if by == "queue" else uses
    by_queue = None
    if by != "cluster":
        by_queue = usage.queues(
            items(queues),
            tally,
            readable=not isinstance(queues, KubeError),
            totals=usage.all_ready(uses),
            bindings=items(bindings),
            ended=usage.held_by_ended(summaries, counted) if isinstance(counted, list) else None,
        )
    if form:
        out.dump(value(by_cluster, by_queue, tally.waits_for, leader), form)
        return
    lines = cluster_lines(by_cluster, tally.waits_for) if by_cluster is not None else []
    if by_cluster is not None:
        lines += part_lines(summaries) + size_lines(summaries, datetime.now(UTC))
    if by_queue is not None:
        lines += [*([Text("")] if lines else []), *queue_lines(by_queue)]
        lines += admission_lines(leader)
    out.say(lines)


async def _hyperjobs(kube: Kube, access: Access) -> list[Object]:
    """List the HyperJobs of all namespaces, or of one namespace where the user may list no more."""
    if access.namespace:
        return (await kube.list(HYPERJOBS, namespace=access.namespace)).items
    try:
        return (await kube.list(HYPERJOBS)).items
    except Forbidden:
        home = access.home(kube)
        out.remark(
            f"only HyperJobs in namespace {home} are counted: you may not list all namespaces"
        )
        return (await kube.list(HYPERJOBS, namespace=home)).items


_UNREPORTED = "?"
_NOTHING = "-"


def cluster_lines(uses: Sequence[ClusterUse], waits: Mapping[str, int]) -> list[Text]:
    """Return the table of clusters, and below it the accelerators for which HyperJobs wait."""
    header = (
        *("CLUSTER", "READY", "ACCELERATOR"),
        *("ALLOCATABLE", "USED", "RESERVED", "FREE", "HYPERJOBS"),
    )
    rows: list[Row] = [
        (
            use.cluster,
            _readiness(use),
            use.accelerator or _NOTHING,
            _number_text(use.allocatable),
            _number_text(use.used),
            _number_text(use.reserved),
            Text(_number_text(use.free), style="" if use.free else "yellow"),
            str(use.hyperjobs),
        )
        for use in uses
    ]
    totals: dict[str, list[int]] = {}
    for use in uses:
        if use.accelerator and use.ready:
            sums = totals.setdefault(use.accelerator, [0] * 5)
            counts = (use.allocatable, use.used, use.reserved, use.free, use.hyperjobs)
            for place, value in enumerate(counts):
                sums[place] += value or 0
    if len(uses) > 1:
        rows += [
            (Text("all ready", style="bold"), "", accelerator, *map(str, sums))
            for accelerator, sums in totals.items()
        ]
    lines = table(header, rows)
    if waits:
        text = ", ".join(f"{number} {name}" for name, number in sorted(waits.items()))
        lines.append(Text.assemble(("Waiting: ", "bold"), text))
    return lines


def part_lines(summaries: Sequence[Summary]) -> list[Text]:
    """Return the sub-jobs that run with fewer than all of their pods, and with how many."""
    parts = [
        f"{summary.namespace}/{job.name} with {job.running} of {job.pods} pods"
        for summary in summaries
        for job in summary.jobs
        if runs_in_part(job)
    ]
    return [Text.assemble(("Run in part: ", "bold"), in_words(parts, shown=5))] if parts else []


def size_lines(summaries: Sequence[Summary], now: datetime) -> list[Text]:
    """Return the running HyperJobs that have had several sizes, and their time at each."""
    parts = [
        f"{summary.namespace}/{summary.name} {text}"
        for summary in summaries
        if summary.running_pods
        and (text := sizes_text(summary.speeds, summary.goodput, summary.training, now))
    ]
    return [Text.assemble(("By size: ", "bold"), in_words(parts, shown=5))] if parts else []


def queue_lines(uses: Sequence[QueueUse]) -> list[Text]:
    """Return the table of queues; RUN and WAIT count HyperJobs, other columns accelerators."""
    counts_ended = any(use.ended is not None for use in uses)
    header = (
        *("QUEUE", "STATE", "ACCELERATOR", "SHARE", "CAPABILITY", "USED", "CONSUMED"),
        *(("ENDED",) if counts_ended else ()),
        *("WAITING", "RUN", "WAIT"),
    )
    rows: list[Row] = [
        (
            use.queue,
            Text(use.where, style=_queue_style(use)),
            use.accelerator or _NOTHING,
            _NOTHING if use.share is None else str(use.share),
            _NOTHING if use.capability is None else str(use.capability),
            str(use.used),
            _NOTHING if use.consumed is None else str(use.consumed),
            *((Text(str(use.ended), style="yellow" if use.ended else ""),) if counts_ended else ()),
            Text(str(use.waiting), style="yellow" if use.waiting else ""),
            str(use.running_hyperjobs),
            str(use.waiting_hyperjobs),
        )
        for use in uses
    ]
    return table(header, rows)


def leader_from(leases: Reading, *, now: datetime) -> Leader | None:
    """Return the leading controller; None if the Lease is not readable.

    Without a Lease it is a controller that does not lead.
    """
    if isinstance(leases, KubeError):
        return None
    return leader_of(leases or [{}], now=now)


def admission_lines(leader: Leader | None) -> list[Text]:
    """Return the queue admission of the leading controller; empty if the Lease is not readable."""
    if leader is None:
        return []
    if not leader.leads:
        text = "No controller holds the Lease: only one with --no-leader-elect admits HyperJobs"
        return [Text(text, style="bold red")]
    if not leader.admission:
        return []
    return [Text.assemble(("Queue admission: ", "bold"), leader.admission)]


def value(
    cluster_uses: Sequence[ClusterUse] | None,
    queue_uses: Sequence[QueueUse] | None,
    waits: Mapping[str, int],
    leader: Leader | None = None,
) -> Object:
    """Return the counts as JSON values, and the queue admission of a controller that leads."""
    found: Object = {"waiting": dict(waits)}
    if leader is not None and leader.leads and leader.admission:
        found["queueAdmission"] = leader.admission
    if cluster_uses is not None:
        found["clusters"] = [asdict(use) for use in cluster_uses]
    if queue_uses is not None:
        found["queues"] = [_json_names(asdict(use)) for use in queue_uses]
    return found


def _json_names(entry: Object) -> Object:
    renamed = {
        "running_hyperjobs": "runningHyperJobs",
        "waiting_hyperjobs": "waitingHyperJobs",
        "closed_in": "closedIn",
    }
    return {renamed.get(key, key): item for key, item in entry.items()}


def _readiness(use: ClusterUse) -> Text:
    if not use.ready:
        return Text("False", style="bold red")
    if use.taints:
        return Text(f"tainted {', '.join(use.taints)}", style="yellow")
    return Text("True")


def _queue_style(use: QueueUse) -> str:
    if use.state != "Open":
        return "bold red"
    return "yellow" if use.closed_in else ""


def _number_text(value: int | None) -> str:
    return _UNREPORTED if value is None else str(value)
