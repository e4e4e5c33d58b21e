"""The namespace controller: every namespace goes to every member, unless it says no.

It must never propagate Karmada's own namespaces or those of Kubernetes.
"""

from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import NotFound
from hyperjob.kube.resources import NAMESPACES, WORKS, key_of
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.karmada.works import build_work, sync_work, work_id


class NamespaceController:
    """One controller over namespaces."""

    def __init__(self, kube: Kube, caches: Caches) -> None:
        self._kube = kube
        self._caches = caches
        self.controller = Controller("namespace-sync-controller", self._sync, workers=2)
        caches.namespaces.add_handler(self._on_namespace)
        caches.clusters.add_handler(self._on_cluster)

    def _on_namespace(self, event: EventType, old: Object | None, new: Object | None) -> None:
        namespace = new or old
        assert namespace is not None
        self.controller.add(key_of(namespace))

    def _on_cluster(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if event is EventType.ADDED:
            for namespace in self._caches.namespaces.items():
                self.controller.add(key_of(namespace))

    async def _sync(self, name: str) -> None:
        if names.is_reserved_namespace(name):
            return
        namespace = self._caches.namespaces.get(name)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            await self._collect(name)
            return
        labels = namespace["metadata"].get("labels") or {}
        if str(labels.get(names.SKIP_AUTO_PROPAGATION, "")).lower() == "true":
            return
        template = {
            **namespace,
            "apiVersion": NAMESPACES.api_version,
            "kind": NAMESPACES.kind,
        }
        for cluster in self._caches.clusters.items():
            await self._ensure(template, cluster["metadata"]["name"])

    async def _ensure(self, template: Object, cluster: str) -> None:
        live = self._caches.works.get(_work_key(template["metadata"]["name"], cluster))
        desired = build_work(template, cluster=cluster, work_id=work_id(live) or str(uuid4()))
        if live is None:
            await self._kube.create(WORKS, desired)
        elif not live["metadata"].get("deletionTimestamp"):
            synced = sync_work(live, desired)
            if synced != live:
                await self._kube.replace(WORKS, synced)

    async def _collect(self, name: str) -> None:
        """Delete the Works of a namespace that goes: not every API server collects garbage."""
        for cluster in self._caches.clusters.items():
            work = self._caches.works.get(_work_key(name, cluster["metadata"]["name"]))
            if work is None or work["metadata"].get("deletionTimestamp"):
                continue
            try:
                await self._kube.delete(
                    WORKS, work["metadata"]["name"], namespace=work["metadata"]["namespace"]
                )
            except NotFound:
                continue


def _work_key(namespace: str, cluster: str) -> str:
    name = names.work_name(NAMESPACES.kind, namespace, "")
    return f"{names.execution_space(cluster)}/{name}"
