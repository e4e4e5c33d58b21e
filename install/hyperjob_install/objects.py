"""The description of an installed object: its resource, part, and rules of replacement.

Other modules of the package build the objects.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import INSTALLER, MANAGED_BY, manager_of
from hyperjob_core.kube.resources import Resource

FIELD_MANAGER: Final = INSTALLER

COMPONENT: Final = "app.kubernetes.io/component"
_LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": "hyperjob",
    "app.kubernetes.io/part-of": "hyperjob",
    MANAGED_BY: INSTALLER,
}
EVERYWHERE: Final[Object] = {
    "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    "clusterTolerations": [{"operator": "Exists"}],
}
"""The placement in every cluster; without the toleration NoExecute would delete what pods need."""


class Component(enum.StrEnum):
    """The parts of an installation in the order of application; `--skip` leaves out any but RECORD.

    RECORD is the namespace of the Lease, and the settings of the installation in it.
    """

    CRDS = "crds"
    VOLCANO_CRDS = "volcano-crds"
    RECORD = "record"
    RBAC = "rbac"
    INTERPRETERS = "interpreters"
    QUEUE_POLICY = "queue-policy"
    DEFAULT_QUEUE = "default-queue"
    PRIORITY_CLASSES = "priority-classes"
    TENANCY = "tenancy"
    MEMBERS = "members"
    WEBHOOKS = "webhooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An object to install in the Karmada API server.

    An existing object without HyperJob's label is a problem, if it is no CRD; with
    `only_where_missing` it stays unchanged. `absent`: `install` deletes the object if it has the
    label. `only_where_served`: `install` skips the object where the API server does not serve its
    kind.
    """

    part: Component
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
        """The name of the object in kubectl's form: `clusterrole.rbac.authorization.k8s.io/x`."""
        return title(self.resource, self.name)


def title(resource: Resource, name: str) -> str:
    """Return an object's name in kubectl's form: `clusterrole.rbac.authorization.k8s.io/x`."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name}"


def new_item(
    resource: Resource,
    name: str,
    content: Object,
    *,
    part: Component,
    component: str,
    namespace: str | None = None,
    only_where_missing: bool = False,
    absent: bool = False,
    only_where_served: bool = False,
) -> Item:
    """Return the item of an object with HyperJob's labels.

    `content` has the fields beside apiVersion, kind and name, and may have further metadata.
    """
    metadata = {"name": name, **content.get("metadata", {})}
    if namespace is not None:
        metadata["namespace"] = namespace
    return Item(
        part=part,
        resource=resource,
        object=labelled({**resource.head, **content, "metadata": metadata}, component=component),
        only_where_missing=only_where_missing,
        absent=absent,
        only_where_served=only_where_served,
    )


def labelled(obj: Object, *, component: str) -> Object:
    """Return an object with HyperJob's labels, by which `uninstall` finds it."""
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), **_LABELS, COMPONENT: component}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def is_ours(live: Object) -> bool:
    """Return whether an object of the API server has HyperJob's label."""
    return manager_of(live) == INSTALLER
