"""Shell completion from the API server: names of namespaces, sub-jobs, clusters and queues.

A request takes 3 s at most; where it fails, the completion has no candidates.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from hyperjob.cli.kubectl.connection import Access
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, NAMESPACES, Resource

if TYPE_CHECKING:
    from hyperjob.client.summary import Summary
    from hyperjob_core.kube.client import Kube

SECONDS = 3.0

Offer = tuple[str, str]
"""A candidate and its description."""
Ask = Callable[["Kube", Access, click.Context], Awaitable[Iterable[Offer]]]


class Offered(click.ParamType[str]):
    """A name that the shell completes from the API server's objects; any text is accepted."""

    name = "name"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text unchanged."""
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the names that begin with `incomplete` and are not on the command line yet."""
        return offered(ctx, param, incomplete, self._ask)


def offered(
    ctx: click.Context, param: click.Parameter, incomplete: str, ask: Ask
) -> list[CompletionItem]:
    """List candidates from the API server that the command line names.

    They begin with `incomplete`; those that are the value of the parameter already are left out.
    """
    given = ctx.params
    access = Access(
        kubeconfig=given.get("kubeconfig"),
        context=given.get("context"),
        namespace=given.get("namespace"),
    )
    value = given.get(param.name or "") or ()
    taken = (value,) if isinstance(value, str) else value
    with suppress(KubeError, ConfigError, TimeoutError):
        return [
            CompletionItem(name, help=text)
            for name, text in asyncio.run(_asked(access, ctx, ask))
            if name.startswith(incomplete) and name not in taken
        ]
    return []


async def _asked(access: Access, ctx: click.Context, ask: Ask) -> Sequence[Offer]:
    async with asyncio.timeout(SECONDS), access.connect() as kube:
        return list(await ask(kube, access, ctx))


def _all_of(resource: Resource) -> Ask:
    async def ask(kube: "Kube", _access: Access, _ctx: click.Context) -> Iterable[Offer]:
        listed = await kube.list(resource)
        return sorted((str(item["metadata"]["name"]), "") for item in listed.items)

    return ask


async def _hyperjobs(kube: "Kube", access: Access, _ctx: click.Context) -> Iterable[Offer]:
    from hyperjob.client.summary import read

    listed = await kube.list(HYPERJOBS, namespace=access.home(kube))
    return ((summary.name, summary.phase) for summary in map(read, listed.items))


async def _named_hyperjobs(kube: "Kube", access: Access, ctx: click.Context) -> "list[Summary]":
    """Read the HyperJobs that the command line names already."""
    from hyperjob.client.summary import read

    names = ctx.params.get("names") or [ctx.params.get("name")]
    if not any(names):
        # With an option that still lacks its value, click keeps the arguments before it in
        # ctx.args.
        several = any(param.name == "names" for param in ctx.command.params)
        names = ctx.args if several else ctx.args[:1]
    found = (name.rpartition("/")[2] for name in names)
    return [read(await kube.get(HYPERJOBS, name, namespace=access.home(kube))) for name in found]


async def _jobs(kube: "Kube", access: Access, ctx: click.Context) -> Iterable[Offer]:
    found: dict[str, str] = {}
    for summary in await _named_hyperjobs(kube, access, ctx):
        for job in summary.jobs:
            found.setdefault(job.replicated_job, "replicated job")
            place = f" on {job.cluster}" if job.cluster else ""
            found[job.name.removeprefix(f"{summary.name}-")] = f"{job.phase}{place}"
    return sorted(found.items())


async def _clusters(kube: "Kube", access: Access, ctx: click.Context) -> Iterable[Offer]:
    named = await _named_hyperjobs(kube, access, ctx)
    if not named:
        return await _all_of(CLUSTERS)(kube, access, ctx)
    return sorted({(cluster, "") for summary in named for cluster in summary.clusters})


NAMESPACE: Final = Offered(_all_of(NAMESPACES))
JOB: Final = Offered(_jobs)
CLUSTER: Final = Offered(_clusters)
HYPERJOB: Final = _hyperjobs
