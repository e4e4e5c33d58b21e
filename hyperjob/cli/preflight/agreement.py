"""The check of preflight that the members have the vcjobs that Karmada knows, and no others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from hyperjob.client import restored
from hyperjob.client.restored import Difference, Report
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.text import listed
from hyperjob_install.preflight import CheckResult, Finding
from hyperjob_install.preflight.finding import note, ok, warning

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
