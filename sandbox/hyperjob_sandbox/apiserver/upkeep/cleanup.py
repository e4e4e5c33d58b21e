"""What goes with a deleted namespace or definition, and events whose time is over."""

from datetime import datetime, timedelta

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import GroupResource, Stored
from hyperjob_sandbox.apiserver.transport.coreevents import EVENTS
from hyperjob_sandbox.apiserver.verbs.deleting import DeleteOptions, delete_stored, finish_if_free

_NAMESPACES: GroupResource = ("", "namespaces")
_BACKGROUND = DeleteOptions(propagation="")
_EVENT_LIFE = timedelta(hours=1)


def is_terminating(core: Core, resource: GroupResource, name: str) -> bool:
    """Tell whether a cluster-scoped object is being deleted."""
    stored = core.store.collection(resource).get(("", name))
    return stored is not None and bool(stored.obj["metadata"].get("deletionTimestamp"))


def empty_namespace(core: Core, name: str) -> None:
    """Delete a namespace's content; remove the namespace once nothing is left."""
    namespace = core.store.collection(_NAMESPACES).get(("", name))
    if namespace is None or not namespace.obj["metadata"].get("deletionTimestamp"):
        return
    namespaced = [resource for resource in core.registry.storages() if resource.namespaced]
    if sum(len(_delete_all(core, resource, name)) for resource in namespaced):
        return
    changed: Object = {**namespace.obj, "metadata": dict(namespace.obj["metadata"])}
    changed["spec"] = {**changed["spec"], "finalizers": []}
    resource_info = core.registry.stored(_NAMESPACES)
    assert resource_info is not None  # built in
    if finish_if_free(core, resource_info, changed, namespace) is None:
        core.store.update(_NAMESPACES, changed, expected=namespace)


def empty_definition(core: Core, name: str) -> None:
    """Delete a definition's objects; remove the definition once nothing is left."""
    stored = core.store.collection(definitions.DEFINITIONS).get(("", name))
    if stored is None or not stored.obj["metadata"].get("deletionTimestamp"):
        return
    spec = stored.obj["spec"]
    resource = core.registry.stored((spec["group"], spec["names"]["plural"]))
    if resource is not None and _delete_all(core, resource, None):
        return
    meta = dict(stored.obj["metadata"])
    kept = [f for f in meta.get("finalizers") or [] if f != definitions.FINALIZER]
    meta["finalizers"] = kept
    if not kept:
        del meta["finalizers"]
    changed = {**stored.obj, "metadata": meta}
    owner = core.registry.stored(definitions.DEFINITIONS)
    assert owner is not None  # built in
    if finish_if_free(core, owner, changed, stored) is None and changed != stored.obj:
        core.store.update(definitions.DEFINITIONS, changed, expected=stored)


def expire_events(core: Core, *, now: datetime) -> int:
    """Remove events that are older than an hour; return how many."""
    oldest = (now - _EVENT_LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
    expired = [
        stored
        for stored in core.store.collection(EVENTS).select()
        if stored.obj["metadata"]["creationTimestamp"] < oldest
    ]
    for stored in expired:
        last = {**stored.obj, "metadata": dict(stored.obj["metadata"])}
        core.store.delete(EVENTS, last, expected=stored)
    return len(expired)


def _delete_all(core: Core, resource: ResourceInfo, namespace: str | None) -> list[Stored]:
    """Delete all objects of a resource; return those that finalizers or grace keep."""
    collection = core.collection(resource)
    for stored in list(collection.select(namespace)):
        if not stored.obj["metadata"].get("deletionTimestamp"):
            delete_stored(core, resource, stored, _BACKGROUND)
    return list(collection.select(namespace))
