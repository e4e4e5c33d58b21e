"""`hyperjob top`: accelerators by cluster and by queue."""

import asyncio
from datetime import UTC, datetime
from typing import Final

import click
from rich.text import Text

from hyperjob.api.leader import leader_of
from hyperjob.api.meta import Object
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.top import view
from hyperjob.client import usage
from hyperjob.client.errors import words
from hyperjob.client.reading import Reading, attempt, items
from hyperjob.client.summary import read
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import Forbidden, KubeError
from hyperjob.kube.resources import CLUSTERS, HYPERJOBS, LEASES, QUEUES

_LEASE: Final = "hyperjob-controller"


@click.command()
@access()
@click.option(
    "--by",
    type=click.Choice(["cluster", "queue"]),
    default=None,
    help="Only this table.  [default: both]",
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="karmada-system",
    show_default=True,
    help="Namespace of the controller's Lease.",
)
@out.output(out.JSON, out.YAML)
def top(access: Access, by: str | None, lease_namespace: str, form: str) -> None:
    """Show accelerators: what clusters have, use and have free, and what queues run and hold back.

    HYPERJOBS is what sub-jobs on a cluster take, of all namespaces; with -n, or where only one
    namespace may be read, of that namespace.

    Example: kubectl hyperjob top --by cluster
    """

    async def show() -> None:
        async with access.connect() as kube:
            hyperjobs, clusters, queues, lease = await asyncio.gather(
                _hyperjobs(kube, access),
                _clusters(kube),
                _queues(kube),
                _lease(kube, lease_namespace),
            )
        leader = next((leader_of(each, now=datetime.now(UTC)) for each in items(lease)), None)
        summaries = [read(item) for item in hyperjobs]
        waits = usage.waiting(summaries)
        by_cluster = None if by == "queue" else usage.clusters(items(clusters), summaries)
        by_queue = None
        if by != "cluster":
            readable = not isinstance(queues, KubeError)
            by_queue = usage.queues(items(queues), summaries, readable=readable)
        for reading in (clusters, queues):
            if isinstance(reading, KubeError):
                out.remark(words(reading))
        if form:
            admission = leader.admission if leader is not None else ""
            out.dump(view.value(by_cluster, by_queue, waits, admission), form)
            return
        lines = view.cluster_lines(by_cluster, waits) if by_cluster is not None else []
        if by_queue is not None:
            lines += [*([Text("")] if lines else []), *view.queue_lines(by_queue)]
            lines += view.admission_lines(leader)
        out.say(lines)

    run(show())


async def _hyperjobs(kube: Kube, access: Access) -> list[Object]:
    """List the HyperJobs of all namespaces, or of one where more may not be read."""
    if access.namespace:
        return (await kube.list(HYPERJOBS, namespace=access.namespace)).items
    try:
        return (await kube.list(HYPERJOBS)).items
    except Forbidden:
        home = access.home(kube)
        out.remark(f"only HyperJobs of namespace {home} are counted: you may not list all")
        return (await kube.list(HYPERJOBS, namespace=home)).items


async def _clusters(kube: Kube) -> Reading:
    async def ask() -> list[Object]:
        return (await kube.list(CLUSTERS)).items

    return await attempt(ask)


async def _lease(kube: Kube, namespace: str) -> Reading:
    async def ask() -> list[Object]:
        return [await kube.get(LEASES, _LEASE, namespace=namespace)]

    return await attempt(ask)


async def _queues(kube: Kube) -> Reading:
    async def ask() -> list[Object]:
        return (await kube.list(QUEUES)).items

    return await attempt(ask)
