"""`hyperjob preflight`: check the requirements of HyperJobs in the Karmada API server."""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
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
from hyperjob.cli.preflight.agreement import agreement
from hyperjob.client import restored
from hyperjob_install.preflight import PreflightReport
from hyperjob_install.preflight import preflight as look_over

_CANNOT_LOOK = 2


class _CannotLookError(click.ClickException):
    """A request of the checks failed; the command ends with exit code 2."""

    exit_code = _CANNOT_LOOK


@click.command()
@kubeconfig_option
@context_option
@output_option
def preflight(kubeconfig: Path | None, context: str | None, output: str) -> None:
    """Check the requirements of HyperJobs, one line each, with the command that corrects it.

    The command only reads. Exit code 0: HyperJobs can run; 1: a requirement is not met; 2: the API
    server does not answer.

    Example: hyperjob preflight -o json
    """

    async def run() -> PreflightReport:
        async with connect(kubeconfig, context) as kube:
            found = await look_over(kube, now=datetime.now(UTC))
            if not found.reached:
                return found
            agree = await agreement(partial(restored.report, kube))
            return replace(found, findings=(*found.findings, agree))

    report = end(run(), failure=_CannotLookError)
    flags = view.server_flags(kubeconfig, context)
    if output == "json":
        click.echo(view.report_json(report, flags=flags))
    else:
        for line in view.findings(report, flags=flags):
            click.echo(line)
    if not report.reached:
        sys.exit(_CANNOT_LOOK)
    sys.exit(0 if report.passed else 1)
