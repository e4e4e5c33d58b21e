"""Flags and steps that `install`, `uninstall` and `preflight` share."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import TypeVar

import click

from hyperjob import __version__
from hyperjob.cli.install import view
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_install.objects import FIELD_MANAGER
from hyperjob_install.plan import Change
from hyperjob_install.problems import InstallError

_USER_AGENT = f"{FIELD_MANAGER}/{__version__}"

_T = TypeVar("_T")

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="kubeconfig of the Karmada API server.  [default: $KUBECONFIG, the pod's own account,"
    " ~/.kube/config]",
)
context_option = click.option("--context", metavar="NAME", help="Context of that kubeconfig.")
output_option = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the changes and write nothing."
)
release_option = click.option(
    "--release",
    metavar="NAMESPACE/NAME",
    help="Helm release that runs the command; objects of other releases stay unchanged.",
)


def connect(kubeconfig: Path | None, context: str | None) -> AbstractAsyncContextManager[Kube]:
    """Open a client of the Karmada API server."""
    return Kube.connect(kubeconfig=kubeconfig, context=context, user_agent=_USER_AGENT)


def end(
    work: Coroutine[None, None, _T], *, failure: type[click.ClickException] = click.ClickException
) -> _T:
    """Run `work` and return its result; an error of the API server ends the command in one line."""
    try:
        return asyncio.run(work)
    except (InstallError, KubeError, ConfigError) as error:
        raise failure(str(error)) from None


async def print_changes(
    changes: Sequence[Change],
    *,
    done: AsyncGenerator[Change, None] | None,
    output: str,
    last: str = "",
    kept: bool = False,
) -> None:
    """Print the changes; `done` makes them first, and its error follows the changes it made."""
    made = list(changes) if done is None else []
    error: InstallError | KubeError | None = None
    if done is not None:
        async with aclosing(done):
            try:
                async for change in done:
                    made.append(change)
            except (InstallError, KubeError) as failure:
                error = failure
    dry_run = done is None
    if output == "json":
        text = view.changes_json(made, (), dry_run=dry_run, error=str(error or ""))
        click.echo(text)
    else:
        for line in view.rows(made, kept=kept):
            click.echo(line)
        click.echo(view.summary(made, dry_run=dry_run))
        if last and error is None and not dry_run:
            click.echo(last)
    if error is not None:
        raise error
