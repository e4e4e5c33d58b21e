"""The controllers of bindings: which Works there are, and what the Works make of the statuses.

A binding has a Work on every chosen cluster; a namespace has one on every cluster, unless it says
no. The Works make a binding's status, and that makes the template's: a Work whose apply failed
shows no status any more, although the object may still run in the member, as in Karmada.
"""

from collections.abc import Iterable
from typing import Final
from uuid import uuid4

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import condition, mapping, string
from hyperjob_core.kube.resources import PRIORITY_CLASSES, key_of
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import (
    Controller,
    change_of,
    generation_changed,
)
from hyperjob_sandbox.karmada import interpreter, names
from hyperjob_sandbox.karmada.bindings import target_clusters
from hyperjob_sandbox.karmada.caches import BY_BINDING, Caches, work_binding_keys
from hyperjob_sandbox.karmada.works import address, build_work, sync_work
from hyperjob_sandbox.member.caches import DEPENDENCIES
from hyperjob_sandbox.objects import is_going, labels_of, with_conditions

_GATHER_SECONDS: Final = 0.1
"""Changes that come this close together become one write."""
_APPLIED: Final = ("True", "FullyAppliedSuccess", "All works have been successfully applied")
_NOT_APPLIED: Final = (
    "False",
    "FullyAppliedFailed",
    "Failed to apply all works, see status.aggregatedStatus for details",
)


class BindingController:
    """One controller over bindings of both scopes."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("binding-controller", self._sync, workers=8)
        self.controller.watch(*caches.bindings, when=generation_changed)

    async def _sync(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None:
            return
        targets = () if is_going(binding) else target_clusters(binding)
        for work in self._caches.works.by_index(BY_BINDING, key):
            if names.cluster_of(work) not in targets:
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
        self.controller.watch(
            caches.clusters,
            when=lambda old, _: old is None,
            keys=lambda _: map(key_of, caches.namespaces.items()),
        )

    async def _sync(self, name: str) -> None:
        if names.is_reserved_namespace(name):
            return
        namespace = self._caches.namespaces.get(name)
        if namespace is None or is_going(namespace):
            return  # its Works go with it: it owns them
        if labels_of(namespace).get(names.SKIP_AUTO_PROPAGATION, "").lower() != "true":
            for cluster in self._caches.clusters.items():
                await _put(self._caches, namespace, key_of(cluster))


class StatusController:
    """One controller over bindings of both scopes: their status, and that of their templates."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("binding-status-controller", self._sync, workers=8)
        self.controller.watch(
            caches.works,
            when=change_of(lambda work: (work.get("status"), is_going(work))),
            keys=work_binding_keys,
            after=_GATHER_SECONDS,
        )
        moved = change_of(target_clusters)
        self.controller.watch(
            *caches.bindings,
            when=lambda old, new: old is not None and moved(old, new),
            after=_GATHER_SECONDS,
        )

    async def _sync(self, key: str) -> None:
        binding = self._caches.binding(key)
        works = self._caches.works.by_index(BY_BINDING, key)
        if binding is None or is_going(binding):
            return
        if not all((work.get("status") or {}).get("conditions") for work in works):
            return  # a Work that was just made speaks in a moment, and brings us back
        status = binding_status(binding, works, now=wire_now())
        await self._caches.set_status(binding, status)
        reference: Object = binding["spec"]["resource"]
        template = self._caches.template(reference)
        if template is None or template["metadata"]["uid"] != reference["uid"]:
            return
        if reference["kind"] not in {each.kind for each in (*DEPENDENCIES, PRIORITY_CLASSES)}:
            reported = status.get("aggregatedStatus") or []
            aggregated = interpreter.aggregate_status(template, reported)
            await self._caches.set_status(template, aggregated)


async def _put(
    caches: Caches, template: Object, cluster: str, binding: Object | None = None
) -> None:
    live = caches.works.get(key_of({"metadata": address(template, cluster)})) or {"metadata": {}}
    identity = labels_of(live).get(names.WORK_ID) or str(uuid4())
    desired = build_work(template, cluster=cluster, work_id=identity, binding=binding)
    await caches.ensure(desired, sync_work)


def binding_status(binding: Object, works: Iterable[Object], *, now: str) -> Object:
    """Return the binding's status with the items and the FullyApplied condition of its Works."""
    items = [_item(work) for work in works if not is_going(work)]
    items.sort(key=lambda item: str(item["clusterName"]))
    status: Object = {**(binding.get("status") or {}), "aggregatedStatus": items}
    if not items:
        del status["aggregatedStatus"]
    everywhere = sorted(target_clusters(binding)) == [item["clusterName"] for item in items]
    complete = bool(items) and everywhere and all(item.get("applied") for item in items)
    return with_conditions(status, now=now, FullyApplied=_APPLIED if complete else _NOT_APPLIED)


def _item(work: Object) -> Object:
    item: Object = {"clusterName": names.cluster_of(work), "health": "Unknown"}
    applied = condition(mapping(work.get("status")), "Applied")
    if not applied:
        return item
    if applied.get("status") != "True":
        return {**item, "appliedMessage": string(applied.get("message"))}
    for entry in (work.get("status") or {}).get("manifestStatuses") or ():
        item |= {key: entry[key] for key in ("health", "status") if key in entry}
    return {**item, "applied": True}
