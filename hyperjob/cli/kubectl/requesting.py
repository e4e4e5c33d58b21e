"""Request a restart or a move from the controller, and wait as `--wait` says."""

from collections.abc import Sequence
from typing import Final

from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.changing import Done, each
from hyperjob.client.requests import RequestKind, ask, running_again, taken
from hyperjob.client.waiting import Progress
from hyperjob_core.kube.client import Kube

WAIT: Final = (
    "Wait until the sub-jobs run again; --no-wait returns as soon as the API server has stored"
    " the request.  [default: wait until the controller has accepted it, 10s at most]"
)


async def request(
    access: Access,
    names: Sequence[str],
    wanted: RequestKind,
    *,
    wait: bool | None,
    timeout: float,
    form: str,
) -> None:
    """Request `wanted` for every named HyperJob and print the result of each."""

    async def change(kube: Kube, namespace: str, name: str, progress: Progress) -> Done:
        asked = await ask(kube, namespace, name, wanted)
        if wait is False:
            return asked.hyperjob, "requested"
        found = await taken(kube, namespace, name, wanted, asked, progress=progress)
        if wait:
            found = await running_again(
                kube, namespace, name, asked, seconds=timeout, progress=progress
            )
        return found or asked.hyperjob, wanted.word

    await each(access, names, change, form=form)
