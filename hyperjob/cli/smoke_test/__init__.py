"""`hyperjob smoke-test`: run a small HyperJob on the clusters of an installation and report."""

from collections.abc import Sequence

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, Duration, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.cli.kubectl.offers import CLUSTER, QUEUE


@click.command("smoke-test")
@access()
@click.option(
    "--cluster",
    "clusters",
    type=CLUSTER,
    metavar="NAME",
    multiple=True,
    help="Cluster on which to run a sub-job; may be given more than once.  [default: the first"
    " two clusters that are Ready]",
)
@click.option("--image", metavar="IMAGE", help="Image with a shell.  [default: busybox:1.36]")
@click.option(
    "--queue", type=QUEUE, metavar="NAME", help="Queue of the sub-jobs.  [default: default]"
)
@click.option(
    "--timeout",
    type=Duration(),
    default=300.0,
    show_default="5m",
    metavar="DURATION",
    help="Time limit for the HyperJob to complete.",
)
@out.output(out.JSON)
def smoke_test(
    access: Access,
    clusters: Sequence[str],
    image: str | None,
    queue: str | None,
    timeout: float,
    form: str,
) -> None:
    """Run a small HyperJob (CPU only) on two clusters, and report its progress.

    The HyperJob passes through every part: admission, queue, gang, placement, Karmada, the
    members' Volcano, status, and logs through Karmada's cluster proxy. A HyperJob that has failed
    stays.

    Exit code 0: the HyperJob has completed; 1: the API server refuses it, or no cluster is Ready;
    3: time is up; 4: the HyperJob has failed.

    Example: hyperjob smoke-test --kubeconfig karmada.config
    """
    from hyperjob.cli.data import data_file
    from hyperjob.cli.smoke_test.trial import Trial, manifest

    example = data_file("examples/smoke-test.yaml").read_text(encoding="utf-8")

    async def show() -> None:
        async with access.connect() as kube:
            trial = Trial(kube, access.home(kube), say=out.remark if form else click.echo)
            chosen = await trial.clusters(clusters)
            if not chosen:
                raise FailureError(
                    "no cluster is Ready: run `kubectl get clusters` and `hyperjob preflight`"
                )
            made = manifest(example, clusters=chosen, image=image, queue=queue)
            report = await trial.run(made, seconds=timeout)
        if form:
            out.dump(report, form)

    run(show())
