"""Suspend HyperJobs and resume them."""

from hyperjob.client.changing import patch
from hyperjob.client.errors import NeverError, title
from hyperjob.client.summary import read
from hyperjob.client.waiting import Progress, silent, summary_of, until
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS


async def suspend(kube: Kube, namespace: str, name: str, *, on: bool = True) -> tuple[Object, bool]:
    """Set `spec.suspend` to `on`; return the HyperJob and whether the value changed.

    NeverError when the HyperJob has ended.
    """
    found = await kube.get(HYPERJOBS, name, namespace=namespace)
    before = read(found)
    if before.has_ended:
        raise NeverError(
            f"{title(name)} is {before.phase}: a HyperJob that has ended cannot be suspended or"
            " resumed"
        )
    if before.suspend == on:
        return found, False
    body: Object = {"spec": {"suspend": on}}
    return await patch(kube, namespace, name, body), True


async def settled(
    kube: Kube,
    namespace: str,
    name: str,
    *,
    on: bool,
    seconds: float,
    progress: Progress = silent,
) -> Object | None:
    """Wait until the HyperJob is Suspended (`on`), or runs or has completed (not `on`).

    `seconds` 0 is no time limit.
    """
    wanted = (Phase.SUSPENDED,) if on else (Phase.RUNNING, Phase.COMPLETED)

    def holds(hyperjob: Object | None) -> bool:
        summary = summary_of(hyperjob, name)
        if not summary.is_current:
            return False
        if summary.has_ended and summary.phase not in wanted:
            raise NeverError(f"{title(name)} is {summary.phase}")
        return summary.phase in wanted

    what = "is Suspended" if on else "runs"
    return await until(kube, namespace, name, holds, what=what, seconds=seconds, progress=progress)
