"""The binding controller: a Work on every chosen cluster, and none anywhere else.

It must never write into a member: that is the execution controller's.
"""

from copy import deepcopy
from typing import Final
from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import NotFound
from hyperjob.kube.resources import WORKS, key_of
from hyperjob_sandbox.controller import Awaited, Controller, RetryError, generation_changed
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import is_suspended, target_clusters
from hyperjob_sandbox.karmada.caches import (
    BY_BINDING,
    Caches,
    binding_ids,
    reference_key,
    template_resource,
)
from hyperjob_sandbox.karmada.works import build_work, sync_work, work_id

_GATHER_SECONDS: Final = 0.01


class BindingController:
    """One controller over bindings of both scopes."""

    def __init__(self, kube: Kube, caches: Caches) -> None:
        self._kube = kube
        self._caches = caches
        self._awaited = Awaited()
        self.controller = Controller("binding-controller", self._sync, workers=8)
        caches.bindings.add_handler(self._on_binding)
        caches.cluster_bindings.add_handler(self._on_binding)
        caches.works.add_handler(self._on_work)

    def _on_binding(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None and generation_changed(event, old, new):
            self.controller.add(key_of(new), after=_GATHER_SECONDS)

    def _on_work(self, event: EventType, old: Object | None, new: Object | None) -> None:
        """Make a deleted Work again where the binding still wants it."""
        work = new or old
        assert work is not None
        self._awaited.seen(key_of(work))
        if new is not None or old is None:
            return
        annotations = old["metadata"].get("annotations") or {}
        name = annotations.get(names.BINDING_NAME) or annotations.get(names.CLUSTER_BINDING_NAME)
        if name:
            namespace = annotations.get(names.BINDING_NAMESPACE)
            self.controller.add(f"{namespace}/{name}" if namespace else name)

    async def _sync(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None:
            return
        if binding["metadata"].get("deletionTimestamp"):
            await self._end(key, binding)
            return
        targets = target_clusters(binding)
        for work in self._caches.works_of(binding):
            if names.cluster_of(work["metadata"]["namespace"]) not in targets:
                await self._delete(work)
        template = self._template(binding)
        if template is None:
            return
        for cluster in targets:
            await self._ensure(binding, template, cluster)

    async def _ensure(self, binding: Object, template: Object, cluster: str) -> None:
        suspend = is_suspended(binding["spec"].get("suspension"), cluster)
        live = self._live(template, cluster)
        desired = build_work(
            template,
            cluster=cluster,
            work_id=work_id(live) or str(uuid4()),
            binding=binding,
            suspend=suspend,
        )
        if live is None:
            if key_of(desired) in self._awaited:
                raise RetryError(f"the cache does not hold the new work {key_of(desired)} yet")
            await self._kube.create(WORKS, desired)
            self._awaited.add(key_of(desired))
            return
        if live["metadata"].get("deletionTimestamp"):
            raise RetryError(f"work {key_of(live)} is being deleted")
        synced = sync_work(live, desired)
        if synced != live:
            await self._kube.replace(WORKS, synced)

    def _live(self, template: Object, cluster: str) -> Object | None:
        meta: Object = template["metadata"]
        name = names.work_name(template["kind"], meta["name"], meta.get("namespace", ""))
        return self._caches.works.get(f"{names.execution_space(cluster)}/{name}")

    def _template(self, binding: Object) -> Object | None:
        reference: Object = binding["spec"]["resource"]
        resource = template_resource(reference)
        return None if resource is None else self._caches[resource].get(reference_key(reference))

    async def _end(self, key: str, binding: Object) -> None:
        """Delete the Works of a deleted binding; its end does not wait for theirs."""
        for binding_id in binding_ids(binding):
            for work in self._caches.works.by_index(BY_BINDING, binding_id):
                await self._delete(work)
        own = {names.BINDING_FINALIZER, names.CLUSTER_BINDING_FINALIZER}
        finalizers = binding["metadata"].get("finalizers") or []
        left = [each for each in finalizers if each not in own]
        if left == finalizers:
            return
        ended = deepcopy(binding)
        ended["metadata"]["finalizers"] = left
        try:
            await self._kube.replace(self._caches.binding_resource(key), ended)
        except NotFound:
            return

    async def _delete(self, work: Object) -> None:
        meta: Object = work["metadata"]
        if meta.get("deletionTimestamp"):
            return
        try:
            await self._kube.delete(
                WORKS, meta["name"], namespace=meta["namespace"], uid=meta["uid"]
            )
        except NotFound:
            return
