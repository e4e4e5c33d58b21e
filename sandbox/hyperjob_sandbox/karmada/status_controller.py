"""The status controllers: Works make a binding's status, and that makes the template's.

Both are computed from what is there now and written only when they differ. Nothing may be
remembered: a failed apply takes the status away, as it does in Karmada.
"""

from copy import deepcopy

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import NotFound
from hyperjob.kube.resources import key_of
from hyperjob_sandbox.controller import Controller, wire_now
from hyperjob_sandbox.karmada import interpreter, names
from hyperjob_sandbox.karmada.aggregation import binding_status
from hyperjob_sandbox.karmada.bindings import target_clusters
from hyperjob_sandbox.karmada.caches import (
    DEPENDENCIES,
    Caches,
    reference_key,
    template_resource,
)

_GATHER_SECONDS = 0.1
"""Changes that come this close together become one write."""


class StatusController:
    """One controller over bindings of both scopes, and one over their templates."""

    def __init__(self, kube: Kube, caches: Caches) -> None:
        self._kube = kube
        self._caches = caches
        self.bindings = Controller("binding-status-controller", self._sync_binding, workers=8)
        self.templates = Controller("template-status-controller", self._sync_template, workers=8)
        caches.works.add_handler(self._on_work)
        caches.bindings.add_handler(self._on_binding)
        caches.cluster_bindings.add_handler(self._on_binding)

    def _on_work(self, event: EventType, old: Object | None, new: Object | None) -> None:
        work = new or old
        assert work is not None
        if old is not None and new is not None and _told(old) == _told(new):
            return
        annotations = work["metadata"].get("annotations") or {}
        name = annotations.get(names.BINDING_NAME) or annotations.get(names.CLUSTER_BINDING_NAME)
        if name:
            namespace = annotations.get(names.BINDING_NAMESPACE)
            self.bindings.add(f"{namespace}/{name}" if namespace else name, after=_GATHER_SECONDS)

    def _on_binding(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        key = key_of(new)
        if _reported(new) != _reported(old):
            self.templates.add(key, after=_GATHER_SECONDS)
        if old is not None and target_clusters(old) != target_clusters(new):
            self.bindings.add(key, after=_GATHER_SECONDS)

    async def _sync_binding(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None or binding["metadata"].get("deletionTimestamp"):
            return
        found = self._caches.works_of(binding)
        if any(not (work.get("status") or {}).get("conditions") for work in found):
            return  # a Work that was just made speaks in a moment, and brings us back
        status = binding_status(binding, found, now=wire_now())
        if status == (binding.get("status") or {}):
            return
        updated = {**binding, "status": status}
        try:
            await self._kube.replace(
                self._caches.binding_resource(key), updated, subresource="status"
            )
        except NotFound:
            return

    async def _sync_template(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None or binding["metadata"].get("deletionTimestamp"):
            return
        reference: Object = binding["spec"]["resource"]
        resource = template_resource(reference)
        if resource is None or resource in DEPENDENCIES:
            return
        template = self._caches[resource].get(reference_key(reference))
        if template is None or template["metadata"]["uid"] != reference["uid"]:
            return
        items: list[Object] = _reported(binding) or []
        status = interpreter.aggregate_status(template, items)
        if (status or {}) == (template.get("status") or {}):
            return
        updated = deepcopy(template)
        if status is None:
            updated.pop("status", None)
        else:
            updated["status"] = status
        try:
            await self._kube.replace(resource, updated, subresource="status")
        except NotFound:
            return


def _told(work: Object) -> tuple[object, object]:
    return work.get("status"), work["metadata"].get("deletionTimestamp")


def _reported(binding: Object | None) -> list[Object] | None:
    items: list[Object] | None = ((binding or {}).get("status") or {}).get("aggregatedStatus")
    return items
