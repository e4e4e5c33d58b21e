"""`hyperjob queue close | open`: a Volcano Queue in every member."""

from dataclasses import asdict

import click
from rich.text import Text

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import DURATION, Access, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.client import queues
from hyperjob.table import table
from hyperjob_core.text import listed

_timeout = click.option(
    "--timeout",
    type=DURATION,
    default=30.0,
    show_default="30s",
    metavar="DURATION",
    help="Time limit for Volcano's controller in each cluster.",
)


@click.group()
def queue() -> None:
    """Close and open Volcano's Queues in all clusters.

    Example: hyperjob queue close research
    """


@queue.command("close")
@click.argument("name", metavar="QUEUE")
@access(namespaced=False)
@_timeout
@out.output(out.JSON, out.YAML)
def close(name: str, access: Access, timeout: float, form: str) -> None:
    """Close a Queue in every cluster: running sub-jobs go on, and no other starts.

    HyperJobs of the Queue wait with the reason QueueNotOpen. Exit code 1: a cluster has not closed
    the Queue; a second run closes it there.

    Example: hyperjob queue close research
    """
    _set_state(name, access, timeout, form, opens=False)


@queue.command("open")
@click.argument("name", metavar="QUEUE")
@access(namespaced=False)
@_timeout
@out.output(out.JSON, out.YAML)
def open_(name: str, access: Access, timeout: float, form: str) -> None:
    """Open a closed Queue in every cluster.

    Example: hyperjob queue open research
    """
    _set_state(name, access, timeout, form, opens=True)


def _set_state(name: str, access: Access, timeout: float, form: str, *, opens: bool) -> None:
    """Close or open a Queue in all clusters and print them; FailureError names those that lag."""

    async def change() -> None:
        async with access.connect() as kube:
            found = await queues.change(kube, name, opens=opens, seconds=timeout)
        if form:
            out.dump({"queue": name, "clusters": [asdict(each) for each in found]}, form)
        else:
            rows = [(each.cluster, each.state or "?", Text(each.error)) for each in found]
            out.say(table(("CLUSTER", "STATE", "MESSAGE"), rows))
        if behind := [each.cluster for each in found if each.error]:
            verb = "open" if opens else "closed"
            raise FailureError(f"queue {name} is not {verb} in {listed(behind)}")

    run(change())
