"""`hyperjob suspend`: remove the sub-jobs of HyperJobs from the clusters."""

from collections.abc import Sequence

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.kubectl.names import names_argument
from hyperjob.cli.kubectl.suspending import set_suspend


@click.command()
@names_argument(required=True)
@access()
@out.output(out.JSON, out.YAML, out.NAME)
def suspend(
    names: Sequence[str],
    access: Access,
    form: str,
) -> None:
    """Remove the sub-jobs of HyperJobs from the clusters and release their quota.

    `hyperjob resume` starts the HyperJobs again; `hyperjob wait NAME --for phase=Suspended` waits
    until the sub-jobs are gone.

    Example: kubectl hyperjob suspend llm-training
    """
    run(set_suspend(access, names, on=True, form=form))
