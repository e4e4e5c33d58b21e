"""`hyperjob preflight`: check the requirements of HyperJobs in the Karmada API server."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import click

from hyperjob.cli import install as view
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.client import restored
from hyperjob.client.restored import Difference, Report
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.text import listed
from hyperjob_install.preflight import CheckResult, Finding, PreflightReport
from hyperjob_install.preflight import preflight as look_over
from hyperjob_install.preflight.finding import note, ok, warning

_CANNOT_LOOK = 2


class _CannotLookError(click.ClickException):
    """A request of the checks failed; the command ends with exit code 2."""

    exit_code = _CANNOT_LOOK


@click.command()
@access(namespaced=False)
@view.output_option
def preflight(access: Access, output: str) -> None:
    """Check the requirements of HyperJobs, one line each, with the command that corrects it.

    The command only reads. Exit code 0: HyperJobs can run; 1: a requirement is not met; 2: the API
    server does not answer.

    Example: hyperjob preflight -o json
    """

    async def run() -> PreflightReport:
        async with access.connect() as kube:
            found = await look_over(kube, now=datetime.now(UTC))
            if not found.reached:
                return found
            agree = await agreement(partial(restored.report, kube))
            return replace(found, findings=(*found.findings, agree))

    report = view.end(run(), failure=_CannotLookError)
    if output == "json":
        click.echo(view.report_json(report, flags=access.flags))
    else:
        for line in view.findings(report, flags=access.flags):
            click.echo(line)
    if not report.reached:
        sys.exit(_CANNOT_LOOK)
    sys.exit(0 if report.passed else 1)


CHECK: Final = "members-agree"
_SHOWN: Final = 5
_SECONDS: Final = 5.0
_REMEDY: Final = "hyperjob after-restore"


async def agreement(
    read: Callable[[], Awaitable[Report]],
    *,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Finding:
    """Compare Karmada with its members; a difference counts if it is still there seconds later.

    A sub-job that starts, moves or ends differs for a moment. `read` is `restored.report`.
    """
    try:
        found = await read()
        left = _open(found)
        if left:
            await pause(_SECONDS)
            found = await read()
            left &= _open(found)
    except KubeError as error:
        return Finding(CHECK, note(f"cannot be checked: {error.message}", remedy=_REMEDY))
    return Finding(CHECK, _judge(left, unread=sorted(found.unread)))


def _open(found: Report) -> set[Difference]:
    return {each for each in found.differences if not restored.is_settled(each)}


def _judge(left: set[Difference], *, unread: list[str]) -> CheckResult:
    """Return the finding for the differences `left`, and the clusters that are not compared."""
    if left:
        names = [f"{each.namespace}/{each.name}" for each in sorted(left)]
        return warning(
            f"{len(left)} vcjobs differ between Karmada and the members, as after a restore of"
            f" Karmada from a backup: {listed(names, shown=_SHOWN)}",
            remedy=_REMEDY,
        )
    if unread:
        return note(
            f"the vcjobs of {listed(unread, shown=_SHOWN)} cannot be compared with Karmada's",
            remedy=f"{_REMEDY}, with a kubeconfig that may read clusters/proxy",
        )
    return ok("the members have the vcjobs of HyperJobs that Karmada knows, and no others")
