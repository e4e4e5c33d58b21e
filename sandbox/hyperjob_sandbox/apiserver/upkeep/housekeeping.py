"""The background work of a control plane: garbage, namespaces, definitions, API services.

One task does it, woken by changes in the store. It writes past admission and is never counted among
the requests. It ends with the server.
"""

import asyncio
import logging
from collections import deque

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource, Stored
from hyperjob_sandbox.apiserver.upkeep.garbage import Collector
from hyperjob_sandbox.apiserver.verbs.deleting import DeleteOptions, delete_stored, finish_if_free

_BACKGROUND = DeleteOptions(propagation="")
NAMESPACES: GroupResource = ("", "namespaces")
_TURN = 50
_log = logging.getLogger(__name__)
Work = tuple[str, str]


class Housekeeper:
    """Keeps what must follow from the stored objects; `run` does the work."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._collector = Collector(core)
        self._queue: deque[Work] = deque()
        self._queued: set[Work] = set()
        self._wake = asyncio.Event()
        core.store.subscribe(self._follow)

    async def run(self) -> None:
        """Do what is due, for ever."""
        done = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue or self._collector.due:
                try:
                    self._step()
                except Exception:  # noqa: BLE001  one object must not stop the rest
                    _log.exception("housekeeping failed")
                done += 1
                if done % _TURN == 0:
                    await asyncio.sleep(0)  # requests come first

    def _step(self) -> None:
        if self._collector.due:
            self._collector.step()
            return
        work = self._queue.popleft()
        self._queued.discard(work)
        kind, name = work
        if kind == "namespace":
            _empty_namespace(self._core, name)
        else:
            _empty_definition(self._core, name)

    def _add(self, kind: str, name: str) -> None:
        if (kind, name) not in self._queued:
            self._queued.add((kind, name))
            self._queue.append((kind, name))

    def _follow(self, resource: GroupResource, change: Change) -> None:
        self._collector.follow(resource, change)
        now = change.now
        deleting = bool(now.obj["metadata"].get("deletionTimestamp"))
        gone = change.type == "DELETED"
        if resource == NAMESPACES and deleting and not gone:
            self._add("namespace", now.key[1])
        elif resource == definitions.DEFINITIONS and deleting and not gone:
            self._add("definition", now.key[1])
        elif gone:
            self._after_deletion(resource, now.key[0])
        if self._queue or self._collector.due:
            self._wake.set()

    def _after_deletion(self, resource: GroupResource, namespace: str) -> None:
        """Look again at a namespace or definition that waits for its content to go."""
        if namespace and _is_terminating(self._core, NAMESPACES, namespace):
            self._add("namespace", namespace)
        definition = f"{resource[1]}.{resource[0]}"
        if _is_terminating(self._core, definitions.DEFINITIONS, definition):
            self._add("definition", definition)


def _is_terminating(core: Core, resource: GroupResource, name: str) -> bool:
    """Tell whether a cluster-scoped object is being deleted."""
    stored = core.store.collection(resource).get(("", name))
    return stored is not None and bool(stored.obj["metadata"].get("deletionTimestamp"))


def _empty_namespace(core: Core, name: str) -> None:
    """Delete a namespace's content; remove the namespace once nothing is left."""
    namespace = core.store.collection(NAMESPACES).get(("", name))
    if namespace is None or not namespace.obj["metadata"].get("deletionTimestamp"):
        return
    namespaced = [resource for resource in core.registry.storages() if resource.namespaced]
    if sum(len(_delete_all(core, resource, name)) for resource in namespaced):
        return
    changed: Object = {**namespace.obj, "metadata": dict(namespace.obj["metadata"])}
    changed["spec"] = {**changed["spec"], "finalizers": []}
    resource_info = core.registry.stored(NAMESPACES)
    assert resource_info is not None  # built in
    if finish_if_free(core, resource_info, changed, namespace) is None:
        core.store.update(NAMESPACES, changed, expected=namespace)


def _empty_definition(core: Core, name: str) -> None:
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


def _delete_all(core: Core, resource: ResourceInfo, namespace: str | None) -> list[Stored]:
    """Delete all objects of a resource; return those that finalizers or grace keep."""
    collection = core.collection(resource)
    for stored in list(collection.select(namespace)):
        if not stored.obj["metadata"].get("deletionTimestamp"):
            delete_stored(core, resource, stored, _BACKGROUND)
    return list(collection.select(namespace))
