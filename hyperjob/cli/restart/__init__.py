"""`hyperjob restart`: restart HyperJobs, or some of their sub-jobs."""

from collections.abc import Sequence

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.changing import waiting
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.kubectl.names import names_argument
from hyperjob.cli.kubectl.offers import JOB
from hyperjob.cli.kubectl.requesting import WAIT, request
from hyperjob.client import requests


@click.command()
@names_argument(required=True)
@access()
@click.option(
    "--job",
    "jobs",
    type=JOB,
    metavar="JOB",
    multiple=True,
    help="Only this sub-job or replicated job; may be given more than once.",
)
@waiting(WAIT)
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
    run(request(access, names, wanted, wait=wait, timeout=timeout, form=form))
