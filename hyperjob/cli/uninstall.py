"""`hyperjob uninstall`: delete the objects of `hyperjob install` from the Karmada API server."""

from collections.abc import Sequence
from pathlib import Path

import click

from hyperjob.cli.install.common import (
    connect,
    context_option,
    dry_run_option,
    end,
    kubeconfig_option,
    output_option,
    print_changes,
    release_option,
)
from hyperjob_install.objects import Item
from hyperjob_install.problems import InstallError
from hyperjob_install.record import other_release
from hyperjob_install.remove import in_use, remove, targets


@click.command()
@kubeconfig_option
@context_option
@release_option
@click.option(
    "--keep-crds/--delete-crds",
    default=True,
    show_default=True,
    help="Keep or delete the CRDs. Deleting the HyperJob CRD deletes every HyperJob.",
)
@click.option("--force", is_flag=True, help="Uninstall although HyperJobs exist.")
@dry_run_option
@output_option
def uninstall(
    kubeconfig: Path | None,
    context: str | None,
    release: str | None,
    keep_crds: bool,
    force: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Delete the objects that `hyperjob install` created in the Karmada API server.

    The command deletes the webhook configurations first. Objects that `hyperjob install` did not
    create stay.

    Example: hyperjob uninstall --dry-run
    """

    async def run() -> None:
        async with connect(kubeconfig, context) as kube:
            items: Sequence[Item] = targets(delete_crds=not keep_crds)
            if release and (other := await other_release(kube, release)):
                click.echo(
                    f"the Helm release {other} has installed HyperJob in this Karmada", err=True
                )
                items = ()
            elif not force and (used := await in_use(kube)):
                raise InstallError(f"{used}; {_way_out(keep_crds=keep_crds)}")
            # Only the deletion itself, or a server dry run, shows which objects exist.
            changes = remove(kube, items, dry_run=dry_run)
            changed = [change async for change in changes] if dry_run else []
            await print_changes(
                changed, done=None if dry_run else changes, output=output, kept=True
            )

    end(run())


def _way_out(*, keep_crds: bool) -> str:
    going_on = (
        "--force leaves them without webhooks and without a controller that has the rights to act"
        if keep_crds
        else "--force deletes all of them, and their vcjobs in the members"
    )
    return f"delete them first (kubectl delete hyperjobs --all -A); {going_on}"
