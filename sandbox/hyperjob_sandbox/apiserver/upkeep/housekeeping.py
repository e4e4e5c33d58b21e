"""The background work of a control plane: garbage, and namespaces and definitions that go.

One task does it, woken by changes in the store. It writes past admission.
"""

import asyncio
import logging

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.kinds.definitions import DEFINITIONS, FINALIZER
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource
from hyperjob_sandbox.apiserver.upkeep.garbage import Collector
from hyperjob_sandbox.apiserver.verbs.deleting import NAMESPACES, delete_stored, finish_if_free

_TURN = 50
_log = logging.getLogger(__name__)


class Housekeeper:
    """Keeps what must follow from the stored objects; `run` does the work."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._collector = Collector(core)
        self._going: dict[tuple[GroupResource, str], None] = {}
        self._wake = asyncio.Event()
        core.store.subscribe(self._follow)

    async def run(self) -> None:
        """Do what is due, forever."""
        done = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._going or self._collector.due:
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
        resource, name = next(iter(self._going))
        del self._going[resource, name]
        self._empty(resource, name)

    def _follow(self, resource: GroupResource, change: Change) -> None:
        self._collector.follow(resource, change)
        namespace, name = change.now.key
        if change.type != "DELETED":
            self._add(resource, name)
        else:
            self._add(NAMESPACES, namespace)
            self._add(DEFINITIONS, f"{resource[1]}.{resource[0]}")
        if self._going or self._collector.due:
            self._wake.set()

    def _add(self, resource: GroupResource, name: str) -> None:
        """Look at a namespace or definition that is being deleted: its content may be gone."""
        if resource in (NAMESPACES, DEFINITIONS):
            stored = self._core.store.collection(resource).get(("", name))
            if stored is not None and stored.metadata.get("deletionTimestamp"):
                self._going[resource, name] = None

    def _empty(self, resource: GroupResource, name: str) -> None:
        """Delete what a namespace or definition holds; remove it once nothing is left."""
        store, registry = self._core.store, self._core.registry
        stored, info = store.collection(resource).get(("", name)), registry.stored(resource)
        if stored is None or info is None:
            return
        meta, spec = stored.obj["metadata"], stored.obj["spec"]
        if resource == NAMESPACES:
            held = [each for each in registry.storages() if each.namespaced]
            spec = {**spec, "finalizers": []}
        else:
            declared = registry.stored((spec["group"], spec["names"]["plural"]))
            held = [declared] if declared is not None else []
        namespace = name if resource == NAMESPACES else None
        if sum(_delete_all(self._core, each, namespace) for each in held):
            return
        kept = [each for each in meta.get("finalizers") or () if each != FINALIZER]
        changed: Object = {**stored.obj, "metadata": {**meta, "finalizers": kept}, "spec": spec}
        if finish_if_free(self._core, info, changed, stored) is None and changed != stored.obj:
            store.update(resource, changed, expected=stored)


def _delete_all(core: Core, resource: ResourceInfo, namespace: str | None) -> int:
    """Delete all objects of a resource; count those that finalizers or grace keep."""
    collection = core.collection(resource)
    for stored in collection.select(namespace):
        if not stored.metadata.get("deletionTimestamp"):
            delete_stored(core, resource, stored)
    return len(list(collection.select(namespace)))
