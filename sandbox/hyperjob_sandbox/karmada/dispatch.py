"""The binding controller and the namespace controller: which Works there are.

A binding has a Work on every chosen cluster and none anywhere else; a namespace has one on every
cluster, unless it says no. Neither ever writes into a member: that is the execution controller's.
"""

from collections.abc import Iterable
from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.resources import NAMESPACES, key_of
from hyperjob_sandbox.controller import Controller, appeared, generation_changed, vanished
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import is_suspended, target_clusters
from hyperjob_sandbox.karmada.caches import BY_BINDING, Caches, work_binding_keys
from hyperjob_sandbox.karmada.works import address, build_work, sync_work, work_id
from hyperjob_sandbox.objects import is_going, labels_of


class BindingController:
    """One controller over bindings of both scopes."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("binding-controller", self._sync, workers=8)
        self.controller.watch(*caches.bindings, when=generation_changed)
        # a deleted Work is made again where the binding still wants it
        self.controller.watch(caches.works, when=vanished, keys=work_binding_keys)

    async def _sync(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None:
            return
        targets = () if is_going(binding) else target_clusters(binding)
        for work in self._caches.works.by_index(BY_BINDING, key):
            if names.cluster_of(work["metadata"]["namespace"]) not in targets:
                await self._caches.delete(work)
        if is_going(binding):  # its end does not wait for that of the Works
            await self._caches.let_go(
                binding, names.BINDING_FINALIZER, names.CLUSTER_BINDING_FINALIZER
            )
            return
        template = self._caches.template(binding["spec"]["resource"])
        if template is not None:
            for cluster in targets:
                await _put(self._caches, template, cluster, binding)


class NamespaceController:
    """One controller over namespaces."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("namespace-sync-controller", self._sync, workers=2)
        self.controller.watch(caches.namespaces)
        self.controller.watch(caches.clusters, when=appeared, keys=self._all)

    def _all(self, _: Object) -> Iterable[str]:
        return map(key_of, self._caches.namespaces.items())

    async def _sync(self, name: str) -> None:
        if names.is_reserved_namespace(name):
            return
        namespace = self._caches.namespaces.get(name)
        clusters = [key_of(cluster) for cluster in self._caches.clusters.items()]
        if namespace is None or is_going(namespace):
            await self._collect(name, clusters)
        elif labels_of(namespace).get(names.SKIP_AUTO_PROPAGATION, "").lower() != "true":
            for cluster in clusters:
                await _put(self._caches, namespace, cluster)

    async def _collect(self, name: str, clusters: list[str]) -> None:
        """Delete the Works of a namespace that goes: not every API server collects garbage."""
        for cluster in clusters:
            where = address({"kind": NAMESPACES.kind, "metadata": {"name": name}}, cluster)
            work = self._caches.works.get(key_of({"metadata": where}))
            if work is not None:
                await self._caches.delete(work)


async def _put(
    caches: Caches, template: Object, cluster: str, binding: Object | None = None
) -> None:
    live = caches.works.get(key_of({"metadata": address(template, cluster)}))
    desired = build_work(
        template,
        cluster=cluster,
        work_id=work_id(live) or str(uuid4()),
        binding=binding,
        suspend=binding is not None and is_suspended(binding["spec"].get("suspension")),
    )
    await caches.ensure(desired, sync_work)
