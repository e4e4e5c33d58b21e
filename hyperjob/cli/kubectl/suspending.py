"""Set `spec.suspend` of HyperJobs and print the result: `suspend` and `resume` share it."""

from collections.abc import Sequence

from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.changing import Done, each
from hyperjob.client.suspending import suspend
from hyperjob.client.waiting import Progress
from hyperjob_core.kube.client import Kube


async def set_suspend(
    access: Access,
    names: Sequence[str],
    *,
    on: bool,
    form: str,
) -> None:
    """Suspend or resume every named HyperJob."""

    async def change(kube: Kube, namespace: str, name: str, _progress: Progress) -> Done:
        found, changed = await suspend(kube, namespace, name, on=on)
        if changed:
            return found, "suspended" if on else "resumed"
        return found, "already suspended" if on else "not suspended"

    await each(access, names, change, form=form)
