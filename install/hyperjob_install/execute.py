"""Apply the plan of an installation in order, and wait until new CRDs are served.

The module decides nothing: it writes the objects that the plan marks as different.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from hyperjob_core.api.wire import is_true
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import CRDS
from hyperjob_install.objects import FIELD_MANAGER, Component, Item, title
from hyperjob_install.plan import Action, Change, InstallPlan
from hyperjob_install.problems import InstallError
from hyperjob_install.reach import require_webhook
from hyperjob_install.waiting import until

WAIT_SECONDS: Final = 60.0
WEBHOOK_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.5


async def execute(
    kube: Kube,
    plan: InstallPlan,
    *,
    force_conflicts: bool = False,
    unreachable: bool = False,
    wait: float = WAIT_SECONDS,
    webhook_wait: float = WEBHOOK_SECONDS,
) -> AsyncGenerator[Change, None]:
    """Apply the objects that differ, and yield each change after it; raises InstallError.

    The function waits up to `wait` seconds for each new CRD before it applies objects of its kind.
    Before it changes a webhook configuration, the API server must reach the webhook within
    `webhook_wait` seconds, unless `unreachable` is set, and must trust its certificate.
    """
    fresh: list[str] = []
    replaced: set[Component] = set()
    unchecked = True
    for step in plan.steps:
        if fresh and step.item.resource is not CRDS:
            await _established(kube, fresh, wait)
            fresh = []
        if step.change.action is Action.DELETED:
            await _delete(kube, step.item)
            replaced.add(step.item.part)
        elif step.change.action.changes:
            if step.item.part is Component.WEBHOOKS and unchecked:
                await require_webhook(
                    kube, step.item, unreachable=unreachable, seconds=webhook_wait
                )
                unchecked = False
            patience = wait if step.item.part in replaced else 0
            await _apply(kube, step.item, force=force_conflicts, patience=patience)
        if step.item.resource is CRDS and step.change.action is Action.CREATED:
            fresh.append(step.item.name)
        yield step.change
    await _established(kube, fresh, wait)


async def _apply(kube: Kube, item: Item, *, force: bool, patience: float) -> None:
    """Apply an object; retry for `patience` seconds after a refusal.

    Karmada's webhook reads from a cache, which may still have an object that was just deleted.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            await kube.apply(item.resource, item.object, field_manager=FIELD_MANAGER, force=force)
        except KubeError as error:
            if time.monotonic() >= deadline:
                raise InstallError(
                    f"{item.title}: {error.message}; the objects before it are applied: run the"
                    " command again"
                ) from error
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            return


async def _delete(kube: Kube, item: Item) -> None:
    try:
        uid = item.object["metadata"].get("uid")
        await kube.delete(item.resource, item.name, namespace=item.namespace, uid=uid)
    except NotFound:
        return
    except KubeError as error:
        raise InstallError(f"{item.title}: {error.message}") from error


async def _established(kube: Kube, names: Sequence[str], seconds: float) -> None:
    for name in names:
        if not await until(
            kube, CRDS, name, lambda found: is_true(found, "Established"), seconds=seconds
        ):
            raise InstallError(
                f"{title(CRDS, name)} is not served after {seconds:g}s; see"
                f" `kubectl describe crd {name}`"
            )
