"""Change HyperJobs by a merge patch each, and say what was done to which.

It writes only what a command decided.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click

from hyperjob.api.meta import Object
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, Duration
from hyperjob.cli.kubectl.exits import Code, FailureError, words
from hyperjob.kube.client import Kube, PatchType
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import HYPERJOBS

FIELD_MANAGER = "kubectl-hyperjob"
_F = TypeVar("_F", bound=Callable[..., Any])


def waiting(default: str) -> Callable[[_F], _F]:
    """Give a command `--wait`, `--timeout` and `--dry-run`."""

    def decorate(function: _F) -> _F:
        for option in (
            click.option(
                "--dry-run", is_flag=True, help="Have the API server check it and store nothing."
            ),
            click.option(
                "--timeout",
                type=Duration(),
                default=300.0,
                show_default="5m",
                metavar="DURATION",
                help="How long --wait waits; 0 is for ever.",
            ),
            click.option("--wait/--no-wait", default=None, help=default),
        ):
            function = option(function)
        return function

    return decorate


async def patch(kube: Kube, namespace: str, name: str, body: Object, *, dry_run: bool) -> Object:
    """Merge a change into a HyperJob."""
    return await kube.patch(
        HYPERJOBS,
        name,
        body,
        kind=PatchType.MERGE,
        namespace=namespace,
        field_manager=FIELD_MANAGER,
        dry_run=dry_run,
    )


Done = tuple[Object, str]
"""The HyperJob as it is now, and what was done to it in a word or two."""


async def each(
    access: Access, names: Sequence[str], change: Callable[[Kube, str, str], Awaitable[Done]],
    *, form: str, dry_run: bool,
) -> None:  # fmt: skip
    """Change several HyperJobs side by side and print what came of each.

    What failed for one does not keep the others from being changed; it ends the command.
    """
    async with access.connect() as kube:
        namespace = access.home(kube)
        results = await asyncio.gather(
            *(change(kube, namespace, name) for name in names), return_exceptions=True
        )
    done = [result for result in results if not isinstance(result, BaseException)]
    if form:
        out.objects([item for item, _ in done], form, single=len(names) == 1)
    else:
        for item, word in done:
            suffix = " (server dry run)" if dry_run else ""
            click.echo(f"{out.title(item['metadata']['name'])} {word}{suffix}")
    code = Code.OK
    for result in results:
        if isinstance(result, KubeError):
            out.remark(words(result))
            code = Code.FAILED
        elif isinstance(result, FailureError):
            result.show()
            code = code or Code(result.exit_code)
        elif isinstance(result, BaseException):
            raise result
    if code:
        raise SystemExit(code)
