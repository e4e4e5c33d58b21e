"""The Helm release that installed HyperJob in a Karmada: a second release must not take over.

An annotation on cluster-wide objects names the release. Installations by hand set no annotation.
"""

from dataclasses import replace
from typing import Final

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CLUSTER_ROLES, MUTATING_WEBHOOKS
from hyperjob_install.objects import Item
from hyperjob_install.rbac import CONTROLLER
from hyperjob_install.record import MARK, recorded_release
from hyperjob_rules.configuration import MUTATING_NAME

_MARKED: Final = ((CLUSTER_ROLES, CONTROLLER), (MUTATING_WEBHOOKS, MUTATING_NAME))


def marked(items: list[Item], release: str) -> list[Item]:
    """Return the items with the annotation of a release, NAMESPACE/NAME."""
    return [
        replace(item, object=_with_mark(item, release))
        if (item.resource, item.name) in _MARKED
        else item
        for item in items
    ]


async def other_release(kube: Kube, release: str) -> str:
    """Return the other Helm release that installed HyperJob; "" if there is none.

    The record of the installation decides: a run that takes an installation over and skips a part
    leaves the annotation of the earlier release on that part. Annotations decide without a release
    in the record.
    """
    if owner := await recorded_release(kube):
        return owner if owner != release else ""
    for resource, name in _MARKED:
        try:
            live = await kube.get(resource, name)
        except NotFound:
            continue
        owner = str((live["metadata"].get("annotations") or {}).get(MARK, ""))
        if owner and owner != release:
            return owner
    return ""


def _with_mark(item: Item, release: str) -> dict[str, object]:
    metadata = item.object["metadata"]
    annotations = {**(metadata.get("annotations") or {}), MARK: release}
    return {**item.object, "metadata": {**metadata, "annotations": annotations}}
