"""`hyperjob top`: accelerators by cluster and by queue."""

import asyncio
from datetime import UTC, datetime
from typing import Final

import click
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.cli.top import view
from hyperjob.client import nodeuse, usage
from hyperjob.client.clusters import is_ready
from hyperjob.client.errors import words
from hyperjob.client.members import views_of
from hyperjob.client.reading import Reading, items, lease, listed
from hyperjob.client.summary import read
from hyperjob.client.tally import Tally
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, KubeError
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    HYPERJOBS,
    QUEUES,
    RESOURCE_BINDINGS,
    key_of,
)

_VOLCANO_GLOBAL: Final = "volcano-global"


@click.command()
@access()
@click.option(
    "--by",
    type=click.Choice(["cluster", "queue"]),
    default=None,
    help="Print only this table.  [default: both]",
)
@click.option("--nodes", is_flag=True, help="Print the nodes of every Ready cluster instead.")
@out.output(out.JSON, out.YAML)
def top(access: Access, by: str | None, nodes: bool, form: str) -> None:
    """Show the accelerators that clusters have, use and have free, and the use of each queue.

    HYPERJOBS counts the accelerators of sub-jobs on a cluster, in all namespaces; with -n, or
    where you may list one namespace only, in that namespace. SHARE is the share of a queue, USED
    the accelerators of its sub-jobs that are placed or run, WAITING those of its other sub-jobs.
    ENDED, beside Volcano Global, counts the accelerators that Volcano Global has not released
    after sub-jobs ended. RUN and WAIT count HyperJobs. A parent queue includes the use of its
    children.

    --nodes reads nodes and pods of the clusters through Karmada's proxy, in your own name. OTHERS
    counts the accelerators that pods of other workloads hold, HYPERJOBS those of each HyperJob.

    Example: kubectl hyperjob top --by cluster
    """
    if nodes and by:
        raise click.UsageError("give either --nodes or --by")

    async def show() -> None:
        async with access.connect() as kube:
            if nodes:
                await _nodes(kube, access, form)
            else:
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
    tally, leader = Tally.of(summaries), view.leader(leases, now=datetime.now(UTC))
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
        out.dump(view.value(by_cluster, by_queue, tally.waits_for, leader), form)
        return
    lines = view.cluster_lines(by_cluster, tally.waits_for) if by_cluster is not None else []
    if by_cluster is not None:
        lines += view.part_lines(summaries)
    if by_queue is not None:
        lines += [*([Text("")] if lines else []), *view.queue_lines(by_queue)]
        lines += view.admission_lines(leader)
    out.say(lines)


async def _nodes(kube: Kube, access: Access, form: str) -> None:
    """Print the nodes of Ready clusters; FailureError where no cluster can be read."""
    hyperjobs, clusters = await asyncio.gather(_hyperjobs(kube, access), kube.list(CLUSTERS))
    ready = [key_of(each) for each in clusters.items if is_ready(each)]
    views, errors = await views_of(kube, ready)
    for name, error in sorted(errors.items()):
        out.remark(f"nodes of cluster {name} left out: {words(error)}")
    if errors and not views:
        raise FailureError("no cluster lets you list its nodes and pods: ask its administrator")
    uses = nodeuse.nodes(views, map(read, hyperjobs))
    if form:
        out.dump(view.value(None, None, {}, node_uses=uses), form)
        return
    out.say(view.node_lines(uses))


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
