"""APIService objects: one for every group and version that the server itself serves."""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.kinds.strategy import before_create
from hyperjob_sandbox.apiserver.state.clock import now
from hyperjob_sandbox.apiserver.state.store import GroupResource

API_SERVICES: GroupResource = ("apiregistration.k8s.io", "apiservices")
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


def synchronize(core: Core) -> None:
    """Create and delete automanaged APIServices so that they name what is served."""
    resource = core.registry.stored(API_SERVICES)
    assert resource is not None  # built in
    collection = core.store.collection(API_SERVICES)
    wanted = {
        f"{version}.{group}": (group, version)
        for group in core.registry.groups()
        for version in core.registry.versions(group)
    }
    for name, (group, version) in wanted.items():
        if collection.get(("", name)) is None:
            obj = _api_service(name, group, version)
            status = obj.pop("status")
            before_create(obj, resource)
            obj["status"] = status
            core.store.create(API_SERVICES, ("", name), obj)
    for stored in list(collection.select()):
        labels = stored.obj["metadata"].get("labels") or {}
        if _AUTOMANAGED in labels and stored.key[1] not in wanted:
            last = {**stored.obj, "metadata": dict(stored.obj["metadata"])}
            core.store.delete(API_SERVICES, last, expected=stored)


def _api_service(name: str, group: str, version: str) -> Object:
    managed = "onstart" if group.endswith("k8s.io") or "." not in group else "true"
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "labels": {_AUTOMANAGED: managed}},
        "spec": {
            "version": version,
            **({"group": group} if group else {}),
            "groupPriorityMinimum": 1000 if managed == "true" else 17000,
            "versionPriority": 100,
        },
        "status": {
            "conditions": [
                {
                    "type": "Available",
                    "status": "True",
                    "lastTransitionTime": now(),
                    "reason": "Local",
                    "message": "Local APIServices are always available",
                }
            ]
        },
    }
