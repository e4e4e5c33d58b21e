"""`hyperjob suspend`, `resume`, `restart` and `migrate`: change running HyperJobs."""

from collections.abc import Sequence
from typing import Final

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import (
    CLUSTER,
    JOB,
    Access,
    access,
    jobs_option,
    name_argument,
    names_argument,
)
from hyperjob.cli.kubectl.changing import Done, each, wait_options
from hyperjob.cli.kubectl.exits import run
from hyperjob.client import requests
from hyperjob.client.reading import Target
from hyperjob.client.waiting import Progress

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
