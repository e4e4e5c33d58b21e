"""What an installed object is: where it goes, whose it is, and whether it may be replaced.

Only describes; the objects themselves are built beside it.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.resources import Resource

FIELD_MANAGER: Final = "hyperjob-install"

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "app.kubernetes.io/component"
_LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": "hyperjob",
    "app.kubernetes.io/part-of": "hyperjob",
    MANAGED_BY: FIELD_MANAGER,
}


class Part(enum.StrEnum):
    """What can be left out of an installation, in the order in which it is applied."""

    CRDS = "crds"
    VOLCANO_CRDS = "volcano-crds"
    RBAC = "rbac"
    INTERPRETERS = "interpreters"
    QUEUE_POLICY = "queue-policy"
    DEFAULT_QUEUE = "default-queue"
    TENANCY = "tenancy"
    PROGRESS = "progress"
    WEBHOOKS = "webhooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One object to have in the Karmada API server.

    `only_where_missing`: another's object of this name is left as it is. `absent`: the object is
    to be gone, if it is ours. `only_where_served`: it is left out where the API server does not
    serve its kind.
    """

    part: Part
    resource: Resource
    object: Object
    only_where_missing: bool = False
    absent: bool = False
    only_where_served: bool = False

    @property
    def name(self) -> str:
        """Return the object's name."""
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """Return the object's namespace, None for a cluster-wide one."""
        namespace = self.object["metadata"].get("namespace")
        return None if namespace is None else str(namespace)

    @property
    def title(self) -> str:
        """Name the object as kubectl does: `clusterrole.rbac.authorization.k8s.io/x`."""
        return title(self.resource, self.name)


def title(resource: Resource, name: str) -> str:
    """Name an object as kubectl does: `clusterrole.rbac.authorization.k8s.io/x`."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name}"


def labelled(obj: Object, *, component: str) -> Object:
    """Return an object with the labels that say that it is ours."""
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), **_LABELS, COMPONENT: component}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def is_ours(live: Object) -> bool:
    """Return whether an object of the API server was made here."""
    labels = live["metadata"].get("labels") or {}
    return bool(labels.get(MANAGED_BY) == FIELD_MANAGER)
