"""`hyperjob resume`: resume suspended HyperJobs."""

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
def resume(
    names: Sequence[str],
    access: Access,
    form: str,
) -> None:
    """Resume suspended HyperJobs: the controller creates their sub-jobs again.

    `hyperjob wait NAME --for phase=Running,Completed` waits until the HyperJob runs.

    Example: kubectl hyperjob resume llm-training
    """
    run(set_suspend(access, names, on=False, form=form))
