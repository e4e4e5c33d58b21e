"""Takes an installation away, in the reverse order: webhooks first, definitions last or never.

Deletes only what carries our label, no object that others created under our names.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from hyperjob.install.manifest import Settings, manifest
from hyperjob.install.objects import Item, Part, is_ours
from hyperjob.install.plan import Action, Change
from hyperjob.install.problems import InstallError
from hyperjob.install.rbac import LEASE, UI
from hyperjob.install.waiting import until
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError, NotFound
from hyperjob.kube.resources import CRDS, HYPERJOBS, LEASES, key_of

WAIT_SECONDS: Final = 60.0
_SHOWN: Final = 5
_ANYWHERE: Final = "https://nowhere.invalid"


def targets(*, lease_namespace: str, delete_crds: bool) -> list[Item]:
    """List what to delete, in order."""
    # Only names matter here, so any address of the webhook will do. The Lease comes after the
    # rights to make it anew.
    items = manifest(
        Settings(
            url=_ANYWHERE,
            lease_namespace=lease_namespace,
            service_accounts=True,
            ui_user=UI,
            tenancy=True,
            progress=True,
        )
    )
    definitions = {Part.CRDS, Part.VOLCANO_CRDS}
    *rest, namespace = (item for item in reversed(items) if item.part not in definitions)
    return [
        *rest,
        _lease(lease_namespace),
        namespace,
        *(item for item in reversed(items) if delete_crds and item.part in definitions),
    ]


async def in_use(kube: Kube) -> str:
    """Say which HyperJobs exist, "" when none do."""
    try:
        keys = [key_of(item) for item in (await kube.list(HYPERJOBS)).items]
    except NotFound:
        return ""
    if not keys:
        return ""
    shown = ", ".join(keys[:_SHOWN]) + (", …" if len(keys) > _SHOWN else "")
    there = "1 HyperJob exists" if len(keys) == 1 else f"{len(keys)} HyperJobs exist"
    return f"{there}: {shown}"


async def remove(
    kube: Kube, items: Sequence[Item], *, dry_run: bool = False, wait: float = WAIT_SECONDS
) -> AsyncGenerator[Change, None]:
    """Delete the items, giving what became of each; InstallError ends it.

    A definition is waited for until it is gone, `wait` seconds at most.
    """
    for item in items:
        action, note = await _remove(kube, item, dry_run=dry_run, wait=wait)
        yield Change(item.resource, item.name, item.namespace, action, note=note)


def _lease(namespace: str) -> Item:
    """Name the Lease, which the controller made and did not label."""
    metadata = {"name": LEASE, "namespace": namespace}
    return Item(part=Part.RBAC, resource=LEASES, object={"metadata": metadata})


async def _remove(kube: Kube, item: Item, *, dry_run: bool, wait: float) -> tuple[Action, str]:
    try:
        live = await kube.get(item.resource, item.name, namespace=item.namespace)
    except NotFound:
        return Action.ABSENT, ""
    except KubeError as error:
        raise InstallError(f"{item.title}: {error.message}") from error
    if item.resource is not LEASES and not is_ours(live):
        return Action.KEPT, "not made by hyperjob install"
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
