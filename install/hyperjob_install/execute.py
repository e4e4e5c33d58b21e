"""Carry an installation out: apply its plan in order, or delete it in reverse order.

New CRDs are served before the objects of their kinds are applied. A deletion begins with the
webhook configurations, and ends with the CRDs or leaves them.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import FIELD_MANAGER as CONTROLLER
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.api.ownership import manager_of
from hyperjob_core.api.wire import is_true
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.reflector import states
from hyperjob_core.kube.resources import CRDS, HYPERJOBS, LEASES, Resource, key_of
from hyperjob_core.text import listed
from hyperjob_install.manifest import manifest
from hyperjob_install.objects import FIELD_MANAGER, Component, Item, is_ours, title
from hyperjob_install.plan import Action, Change, InstallPlan
from hyperjob_install.problems import InstallError
from hyperjob_install.reach import require_webhook
from hyperjob_install.settings import PARTS, Settings

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
    for change in plan.changes:
        item = change.item
        if fresh and item.resource is not CRDS:
            await _established(kube, fresh, wait)
            fresh = []
        if change.action is Action.DELETED:
            await _delete(kube, item)
            replaced.add(item.part)
        elif change.action.changes:
            if item.part is Component.WEBHOOKS and unchecked:
                await require_webhook(kube, item, unreachable=unreachable, seconds=webhook_wait)
                unchecked = False
            patience = wait if item.part in replaced else 0
            await _apply(kube, item, force=force_conflicts, patience=patience)
        if item.resource is CRDS and change.action is Action.CREATED:
            fresh.append(item.name)
        yield change
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


_SHOWN: Final = 5
_ANYWHERE: Final = "https://nowhere.invalid"


def targets(*, delete_crds: bool) -> list[Item]:
    """Return the objects to delete, in order."""
    # Deletion needs names only, and any URL of the webhook. The Lease comes after the controller's
    # rights to create it.
    items = manifest(
        Settings(
            url=_ANYWHERE,
            service_accounts=True,
            parts=frozenset(PARTS),
            members=MemberAccess.LOGS,
        )
    )
    definitions = {Component.CRDS, Component.VOLCANO_CRDS}
    *rest, namespace = (item for item in reversed(items) if item.part not in definitions)
    return [
        *rest,
        _lease(),
        namespace,
        *(item for item in reversed(items) if delete_crds and item.part in definitions),
    ]


async def in_use(kube: Kube) -> str:
    """Return a text with the existing HyperJobs; "" when none exist."""
    try:
        keys = [key_of(item) for item in (await kube.list(HYPERJOBS)).items]
    except NotFound:
        return ""
    if not keys:
        return ""
    there = "1 HyperJob exists" if len(keys) == 1 else f"{len(keys)} HyperJobs exist"
    return f"{there}: {listed(keys, shown=_SHOWN)}"


async def remove(
    kube: Kube, items: Sequence[Item], *, dry_run: bool = False, wait: float = WAIT_SECONDS
) -> AsyncGenerator[Change, None]:
    """Delete the items, and yield the change of each; raises InstallError.

    The function waits up to `wait` seconds until a CRD is deleted.
    """
    for item in items:
        action, note = await _remove(kube, item, dry_run=dry_run, wait=wait)
        yield Change(item, action, note=note)


def _lease() -> Item:
    """Return the item of the Lease, which the controller creates with a label of its own."""
    metadata = {"name": LEASE_NAME, "namespace": LEASE_NAMESPACE}
    return Item(part=Component.RBAC, resource=LEASES, object={"metadata": metadata})


async def _remove(kube: Kube, item: Item, *, dry_run: bool, wait: float) -> tuple[Action, str]:
    """Delete one object; return what happened and why it was kept. Raises InstallError."""
    try:
        live = await kube.get(item.resource, item.name, namespace=item.namespace)
    except NotFound:
        return Action.ABSENT, ""
    except KubeError as error:
        raise InstallError(f"{item.title}: {error.message}") from error
    if not is_ours(live) and manager_of(live) != CONTROLLER:
        return Action.KEPT, "not created by hyperjob install"
    try:
        await kube.delete(
            item.resource,
            item.name,
            namespace=item.namespace,
            uid=live["metadata"]["uid"],
            propagation="Background",
            dry_run=dry_run,
        )
    except NotFound:
        return Action.ABSENT, ""
    except KubeError as error:
        raise InstallError(f"{item.title}: {error.message}") from error
    if item.resource is CRDS and not dry_run:
        gone = await until(
            kube, item.resource, item.name, lambda found: found is None, seconds=wait
        )
        if not gone:
            raise InstallError(
                f"{item.title} is still being deleted after {wait:g}s: some of its objects have"
                f" finalizers; see `kubectl get {item.name} -A -o yaml`"
            )
    return Action.DELETED, ""


async def until(
    kube: Kube,
    resource: Resource,
    name: str,
    holds: Callable[[Object | None], bool],
    *,
    seconds: float,
) -> bool:
    """Wait until `holds` is true of a cluster-wide object (None: absent); False after `seconds`."""
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(states(kube, resource, name)) as stream,
        ):
            async for state in stream:
                if holds(state):
                    return True
    except TimeoutError:
        return False
    raise AssertionError("the states of an object do not end")
