"""`hyperjob suspend`, `resume`, `restart` and `migrate`: change running HyperJobs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from hyperjob.cli.files import options
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import (
    CLUSTER,
    DURATION,
    JOB,
    Access,
    access,
    jobs_option,
    name_argument,
    names_argument,
)
from hyperjob.cli.kubectl.exits import Code, failure, run
from hyperjob.client import requests
from hyperjob.client.errors import ClientError, title, words
from hyperjob.client.reading import Target, with_hint
from hyperjob.client.waiting import Progress, silent
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import KubeError, NotFound

_F = TypeVar("_F", bound=Callable[..., Any])


def wait_options(default: str) -> Callable[[_F], _F]:
    """Return a decorator that adds `--wait` and `--timeout` to a command."""
    return options(
        click.option("--wait/--no-wait", default=None, help=default),
        click.option(
            "--timeout",
            type=DURATION,
            default=300.0,
            show_default="5m",
            metavar="DURATION",
            help="Time limit of --wait; 0 is no limit.",
        ),
    )


Done = tuple[Object, str]
"""The HyperJob after the change, and a word for the change."""

Change = Callable[[Target, Progress], Awaitable[Done]]
"""Changes a HyperJob."""


async def each(access: Access, names: Sequence[str], change: Change, *, form: str) -> None:
    """Change several HyperJobs concurrently and print the result of each.

    An error for one HyperJob does not stop the change of the others; it sets the exit code.
    """
    async with access.connect() as kube:
        namespace = access.home(kube)
        with progress(shown=len(names) == 1) as tell:

            async def one(name: str) -> Done:
                try:
                    return await change(Target(kube, namespace, name), tell)
                except NotFound as error:
                    raise await with_hint(kube, error, namespace) from None

            results = await asyncio.gather(*map(one, names), return_exceptions=True)
    done = [result for result in results if not isinstance(result, BaseException)]
    if form:
        out.objects([item for item, _ in done], form, single=len(names) == 1)
    else:
        for item, word in done:
            click.echo(f"{title(item['metadata']['name'])} {word}")
    code = Code.OK
    for result in results:
        if isinstance(result, KubeError):
            out.remark(words(result))
            code = Code.FAILED
        elif isinstance(result, ClientError):
            ending = failure(result)
            ending.show()
            code = code or Code(ending.exit_code)
        elif isinstance(result, BaseException):
            raise result
    if code:
        raise SystemExit(code)


@contextmanager
def progress(*, shown: bool) -> Iterator[Progress]:
    """Show the line on standard error where that is a terminal, and nothing elsewhere."""
    console = out.console(stderr=True)
    if not shown or not console.is_terminal or console.is_dumb_terminal:
        yield silent
        return
    from rich.status import Status

    with Status("", console=console) as status:
        yield status.update


_WAIT: Final = (
    "Wait until the sub-jobs run again; --no-wait returns as soon as the API server has stored"
    " the request.  [default: wait until the controller has accepted it, 10s at most]"
)


@click.command()
@names_argument(required=True)
@access()
@out.output(out.JSON, out.YAML, out.NAME)
def suspend(names: Sequence[str], access: Access, form: str) -> None:
    """Remove the sub-jobs of HyperJobs from the clusters and release their quota.

    `hyperjob resume` starts the HyperJobs again; `hyperjob wait NAME --for phase=Suspended` waits
    until no pod of them is left.

    Example: kubectl hyperjob suspend llm-training
    """
    run(_set_suspend(access, names, on=True, form=form))


@click.command()
@names_argument(required=True)
@access()
@out.output(out.JSON, out.YAML, out.NAME)
def resume(names: Sequence[str], access: Access, form: str) -> None:
    """Resume suspended HyperJobs: the controller creates their sub-jobs again.

    `hyperjob wait NAME --for phase=Running,Completed` waits until the HyperJob runs.

    Example: kubectl hyperjob resume llm-training
    """
    run(_set_suspend(access, names, on=False, form=form))


@click.command()
@names_argument(required=True)
@access()
@jobs_option
@wait_options(_WAIT)
@out.output(out.JSON, out.YAML, out.NAME)
def restart(
    names: Sequence[str],
    access: Access,
    jobs: Sequence[str],
    wait: bool | None,
    timeout: float,
    form: str,
) -> None:
    """Restart HyperJobs, or some of their sub-jobs, without counting against maxRestarts.

    Example: kubectl hyperjob restart llm-training --job trainer-0 --wait
    """
    wanted = requests.restart(jobs)
    run(_request(access, names, wanted, wait=wait, timeout=timeout, form=form))


@click.command()
@name_argument()
@click.argument("jobs", type=JOB, metavar="[JOB]...", nargs=-1)
@access()
@click.option(
    "--from", "cluster", type=CLUSTER, metavar="CLUSTER", help="Only sub-jobs on this cluster."
)
@wait_options(_WAIT)
@out.output(out.JSON, out.YAML, out.NAME)
def migrate(
    name: str,
    jobs: Sequence[str],
    access: Access,
    cluster: str | None,
    wait: bool | None,
    timeout: float,
    form: str,
) -> None:
    """Move sub-jobs to other clusters. A moved sub-job restarts and avoids its former cluster.

    Example: kubectl hyperjob migrate llm-training --from gpu-east
    """
    if not jobs and not cluster:
        raise click.UsageError(
            "give the sub-jobs to move, or --from CLUSTER for all sub-jobs on a cluster"
        )
    wanted = requests.migrate(jobs, cluster=cluster)
    run(_request(access, [name], wanted, wait=wait, timeout=timeout, form=form))


async def _set_suspend(access: Access, names: Sequence[str], *, on: bool, form: str) -> None:

    async def change(target: Target, _progress: Progress) -> Done:
        found, changed = await requests.suspend(target, on=on)
        if changed:
            return found, "suspended" if on else "resumed"
        return found, "already suspended" if on else "not suspended"

    await each(access, names, change, form=form)


async def _request(
    access: Access,
    names: Sequence[str],
    wanted: requests.RequestKind,
    *,
    wait: bool | None,
    timeout: float,
    form: str,
) -> None:
    """Request `wanted` for every named HyperJob, and wait as `--wait` says."""

    async def change(target: Target, progress: Progress) -> Done:
        asked = await requests.ask(target, wanted)
        if wait is False:
            return asked.hyperjob, "requested"
        found = await requests.taken(target, wanted, asked, progress=progress)
        if wait:
            found = await requests.running_again(target, asked, seconds=timeout, progress=progress)
        return found or asked.hyperjob, wanted.word

    await each(access, names, change, form=form)
