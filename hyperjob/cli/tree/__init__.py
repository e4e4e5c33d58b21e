"""`hyperjob tree`: replicated jobs, sub-jobs, clusters and pods by state."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, nullcontext

import click
from rich.live import Live
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.choice import Choice, end, hyperjobs_argument
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.tree import view
from hyperjob.client.errors import title, words
from hyperjob.client.members import pods_of_all
from hyperjob.client.reading import Reading, items, listed
from hyperjob.client.summary import Summary, read
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.following import states
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS, key_of


@click.command()
@hyperjobs_argument(trainjobs=True)
@click.option("--pods", is_flag=True, help="Show every pod, read through Karmada's cluster proxy.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="After printing, watch the HyperJob and print the tree at every change.",
)
@out.output(out.JSON, out.YAML)
def tree(choice: Choice, pods: bool, watch: bool, form: str) -> None:
    """Show the replicated jobs, sub-jobs and clusters of a HyperJob, and its pods by state.

    Example: kubectl hyperjob tree llm-training --pods
    """
    if watch and (not choice.single or form):
        raise click.UsageError("--watch needs one name, and cannot print JSON or YAML")

    async def show() -> None:
        async with choice.access.connect() as kube:
            if watch:
                await _follow(kube, choice.access.home(kube), choice.names[0], pods=pods)
                return
            found = await choice.read(kube)
            summaries = [read(item) for item in sorted(found.items, key=key_of)]
            vcjobs = None if choice.names else await _vcjobs(kube, choice.access.scope(kube))
            trees = await asyncio.gather(
                *(_branches(kube, each, pods=pods, vcjobs=vcjobs) for each in summaries)
            )
        if form:
            values = [view.value(*each) for each in trees]
            if values or not found.errors:
                out.dump(values[0] if choice.single else {"items": values}, form)
        elif not trees and not found.errors:
            out.remark("No resources found.")
        for each in trees if not form else ():
            out.say(view.lines(*each))
        end(found)

    run(show())


Branches = tuple[Summary, dict[str, Object], dict[str, list[Object]]]


async def _branches(
    kube: Kube, summary: Summary, *, pods: bool, vcjobs: Reading | None = None
) -> Branches:
    """Read the vcjobs of a HyperJob unless they are given, and its pods with --pods."""
    wanted = summary.jobs if pods else ()
    reading_pods = pods_of_all(kube, summary.namespace, wanted)
    if vcjobs is None:
        ask = _vcjobs(kube, summary.namespace, summary.name)
        known, (found, errors) = await asyncio.gather(ask, reading_pods)
    else:
        known, (found, errors) = vcjobs, await reading_pods
    for name, error in errors.items():
        out.remark(f"{name}: {words(error)}")
    return summary, _own_vcjobs(summary, items(known)), found


async def _vcjobs(kube: Kube, namespace: str | None, name: str = "") -> Reading:
    """List the vcjobs of one HyperJob, or of all."""
    selector = f"{LABEL_HYPERJOB}={name}" if name else LABEL_HYPERJOB
    return await listed(kube, VCJOBS, namespace=namespace, label_selector=selector)


def _own_vcjobs(summary: Summary, vcjobs: Sequence[Object]) -> dict[str, Object]:
    """Return the vcjobs of a HyperJob, by name."""
    names = {job.name for job in summary.jobs}
    return {
        item["metadata"]["name"]: item
        for item in vcjobs
        if item["metadata"].get("namespace") == summary.namespace
        and item["metadata"]["name"] in names
    }


async def _follow(kube: Kube, namespace: str, name: str, *, pods: bool) -> None:
    """Print the tree at every change of the HyperJob; a terminal shows it in the same place."""
    await kube.get(HYPERJOBS, name, namespace=namespace)
    console = out.console()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    with live if live is not None else nullcontext():
        async with aclosing(states(kube, HYPERJOBS, name, namespace=namespace)) as stream:
            async for hyperjob in stream:
                if hyperjob is None:
                    out.remark(f"{title(name)} deleted")
                    return
                lines = view.lines(*await _branches(kube, read(hyperjob), pods=pods))
                if live is not None:
                    live.update(Text("\n").join(lines), refresh=True)
                else:
                    out.say(lines, to=console)
