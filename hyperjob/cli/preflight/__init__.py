"""`hyperjob preflight`: check what HyperJobs need in the Karmada API server."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from hyperjob.cli.install import view
from hyperjob.cli.install.common import (
    connect,
    context_option,
    end,
    kubeconfig_option,
    output_option,
)
from hyperjob.cli.kubectl.access import lease_namespace_option
from hyperjob.install.preflight import Report
from hyperjob.install.preflight import preflight as look_over

_CANNOT_LOOK = 2


class _CannotLookError(click.ClickException):
    """The API server could not be asked."""

    exit_code = _CANNOT_LOOK


@click.command()
@kubeconfig_option
@context_option
@lease_namespace_option
@output_option
def preflight(
    kubeconfig: Path | None, context: str | None, lease_namespace: str, output: str
) -> None:
    """Check what HyperJobs need, one line each, with the command that corrects it.

    The command changes nothing. Exit code 0: HyperJobs can run; 1: something is missing; 2: the API
    server does not answer.

    Example: hyperjob preflight -o json
    """

    async def run() -> Report:
        async with connect(kubeconfig, context) as kube:
            return await look_over(kube, now=datetime.now(UTC), lease_namespace=lease_namespace)

    report = end(run(), failure=_CannotLookError)
    if output == "json":
        click.echo(view.report_json(report, kubeconfig=kubeconfig))
    else:
        for line in view.findings(report, kubeconfig=kubeconfig):
            click.echo(line)
    if not report.reached:
        sys.exit(_CANNOT_LOOK)
    sys.exit(0 if report.passed else 1)
