"""`hyperjob suspend`: remove the sub-jobs of HyperJobs from the clusters."""

from collections.abc import Sequence

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.changing import waiting
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.kubectl.names import names_argument
from hyperjob.cli.kubectl.suspending import set_suspend


@click.command()
@names_argument(required=True)
@access()
@waiting("Wait until the HyperJob is Suspended.  [default: no]")
@out.output(out.JSON, out.YAML, out.NAME)
def suspend(
    names: Sequence[str],
    access: Access,
    wait: bool | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> None:
    """Remove the sub-jobs of HyperJobs from the clusters and release their quota.

    `hyperjob resume` starts the HyperJobs again.

    Example: kubectl hyperjob suspend llm-training --wait
    """
    run(
        set_suspend(
            access, names, on=True, wait=bool(wait), timeout=timeout, dry_run=dry_run, form=form
        )
    )
