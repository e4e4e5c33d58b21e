"""`hyperjob plan`: the clusters on which HyperJobs of a file would run now, and why.

The command runs the webhook's validation and the controller's decisions on the objects of a
control plane or of a clusters file. It writes nothing.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hyperjob.cli.files import file_option, manifests_option
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code, FailureError


@click.command()
@manifests_option(
    "File with HyperJobs, and with Queues that the plan treats as created; - is standard input."
    " May be given more than once."
)
@file_option(
    "--clusters",
    text="Plan for the idle clusters of this file instead of a live control plane.",
)
@access()
@out.output(out.JSON)
def plan(files: Sequence[str], clusters: Path | None, access: Access, form: str) -> None:
    """Show on which clusters HyperJobs would run now, and why not on the others.

    The command validates each HyperJob as admission does, then runs the controller's own code on
    the objects in memory, with the settings that the controller has on its Lease; a later HyperJob
    of the files gets the accelerators that earlier ones leave. The plan treats Queues in the files
    as created. With built-in queues a HyperJob waits in its queue, behind the HyperJobs that
    already wait. The command writes nothing.

    Exit code 0: every HyperJob of the files would start now; 1: the API server does not answer; 2:
    admission would refuse a HyperJob, or a file cannot be planned; 3: a HyperJob would wait for
    free accelerators or in its queue; 4: a HyperJob cannot run: it is too large for empty clusters
    or for its queue, its queue takes no jobs, or it has ended.

    Example: kubectl hyperjob plan -f job.yaml
    """
    if not files:
        raise FailureError("give a file with -f", code=Code.USAGE)
    # Importing the rules of admission and the controller takes most of a second.
    from hyperjob.cli.plan.planning import planned

    sys.exit(planned(files, clusters, access, form))
