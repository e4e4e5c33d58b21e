"""What an API server holds before its first request: namespaces, priority classes, CRDs."""

from collections.abc import Sequence

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core, key_of
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.kinds.strategy import before_create, normalise_meta

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = (
    ("system-cluster-critical", 2000000000),
    ("system-node-critical", 2000001000),
)


def bootstrap_objects() -> list[Object]:
    """Give the objects that every control plane has."""
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in _NAMESPACES
    ]
    objects += [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": "Used for system critical pods.",
        }
        for name, value in _PRIORITIES
    ]
    return objects


def install(core: Core, objects: Sequence[Object]) -> None:
    """Store objects without admission; raise ValueError for a kind that is not served."""
    for obj in objects:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = core.registry.find_kind(group, version, obj["kind"])
        if resource is None:
            raise ValueError(f"{obj['apiVersion']} {obj['kind']} is not served")
        normalise_meta(obj)
        before_create(obj, resource)
        definitions.complete(core, obj, resource)
        core.store.create(resource.storage, key_of(resource, obj), obj)
