"""`hyperjob migrate`: move sub-jobs to other clusters."""

from collections.abc import Sequence

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.changing import waiting
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.kubectl.names import name_argument
from hyperjob.cli.kubectl.offers import CLUSTER, JOB
from hyperjob.cli.kubectl.requesting import WAIT, request
from hyperjob.client import requests


@click.command()
@name_argument()
@click.argument("jobs", type=JOB, metavar="[JOB]...", nargs=-1)
@access()
@click.option(
    "--from", "cluster", type=CLUSTER, metavar="CLUSTER", help="Only sub-jobs on this cluster."
)
@waiting(WAIT)
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
    run(request(access, [name], wanted, wait=wait, timeout=timeout, form=form))
