"""`hyperjob uninstall`: delete from the Karmada API server what `hyperjob install` made."""

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
    timeout_option,
)
from hyperjob.cli.kubectl.access import lease_namespace_option
from hyperjob.install.objects import Item
from hyperjob.install.problems import InstallError
from hyperjob.install.release import other_release
from hyperjob.install.remove import in_use, remove, targets


@click.command()
@kubeconfig_option
@context_option
@lease_namespace_option
@release_option
@click.option(
    "--keep-crds/--delete-crds",
    default=True,
    show_default=True,
    help="Whether the definitions stay. Deleting the HyperJob's deletes every HyperJob.",
)
@click.option("--force", is_flag=True, help="Uninstall even while HyperJobs exist.")
@dry_run_option
@timeout_option
@output_option
def uninstall(
    kubeconfig: Path | None,
    context: str | None,
    lease_namespace: str,
    release: str | None,
    keep_crds: bool,
    force: bool,
    dry_run: bool,
    timeout: float,
    output: str,
) -> None:
    """Take out of the Karmada API server what `hyperjob install` put there.

    Webhooks go first. Only objects that `hyperjob install` made are deleted.

    Example: hyperjob uninstall --dry-run
    """

    async def run() -> None:
        async with connect(kubeconfig, context) as kube:
            items: Sequence[Item] = targets(
                lease_namespace=lease_namespace, delete_crds=not keep_crds
            )
            if release and (other := await other_release(kube, release)):
                click.echo(f"HyperJob is in this Karmada by the Helm release {other}", err=True)
                items = ()
            elif not force and (used := await in_use(kube)):
                raise InstallError(f"{used}; {_way_out(keep_crds=keep_crds)}")
            # What is deleted shows only as it is done, or as a dry run tries it.
            changes = remove(kube, items, dry_run=dry_run, wait=timeout)
            told = [change async for change in changes] if dry_run else []
            await print_changes(told, done=None if dry_run else changes, output=output, kept=True)

    end(run())


def _way_out(*, keep_crds: bool) -> str:
    going_on = (
        "--force leaves them without defaults, checks and a controller that may act"
        if keep_crds
        else "--force deletes them all, and their jobs in the members"
    )
    return f"delete them first (kubectl delete hyperjobs --all -A); {going_on}"
