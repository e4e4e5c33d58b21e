"""Delete an installation in reverse order: webhook configurations first, CRDs last or never.

The module deletes only objects with the label of the installer or of the controller.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.names import FIELD_MANAGER, LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.api.ownership import manager_of
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import CRDS, HYPERJOBS, LEASES, key_of
from hyperjob_core.text import listed
from hyperjob_install.manifest import manifest
from hyperjob_install.objects import Component, Item, is_ours
from hyperjob_install.plan import Action, Change
from hyperjob_install.problems import InstallError
from hyperjob_install.settings import Settings
from hyperjob_install.waiting import until

WAIT_SECONDS: Final = 60.0
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
            ui=True,
            tenancy=True,
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
        yield Change(item.resource, item.name, item.namespace, action, note=note)


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
    if not is_ours(live) and manager_of(live) != FIELD_MANAGER:
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
