"""The scheduler: gives every binding its clusters, unless its scheduling is suspended.

Suspension is a filter on what comes in, as in Karmada: a suspended binding has no Scheduled
condition at all. It must never look at a binding that no policy claims.
"""

from collections.abc import Iterable
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import PatchType
from hyperjob.kube.errors import NotFound
from hyperjob.kube.resources import Resource, key_of
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import Controller, RetryError, changed_in, generation_changed
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.karmada.scheduling import (
    ScheduleResult,
    affinities,
    applied_placement,
    matches_affinity,
    schedule,
)
from hyperjob_sandbox.objects import annotations_of, is_going, labels_of, set_condition

_FIRST_RETRY: Final = 1.0
_SLOWEST_RETRY: Final = 10.0


class Scheduler:
    """One worker over bindings, as Karmada has."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller(
            "scheduler",
            self._schedule,
            workers=1,
            first_retry=_FIRST_RETRY,
            slowest_retry=_SLOWEST_RETRY,
        )
        self.controller.watch(*caches.bindings, when=_enters_or_changes)
        self.controller.watch(
            caches.clusters,
            when=lambda old, new: changed_in(old, new, _face),
            keys=self._that_might_take,
        )

    def _that_might_take(self, cluster: Object) -> Iterable[str]:
        return [
            key_of(binding)
            for informer in self._caches.bindings
            for binding in informer.items()
            if _is_wanted(binding)
            and any(matches_affinity(group, cluster) for group in affinities(binding))
        ]

    async def _schedule(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None or not binding["spec"].get("placement") or is_going(binding):
            return
        decision = schedule(binding, self._caches.clusters.items())
        informer = self._caches.of_kind(binding)
        assert informer is not None
        try:
            await self._write(informer.resource, binding, decision)
        except NotFound:
            return
        if decision.retry:
            raise RetryError(decision.message)

    async def _write(self, resource: Resource, binding: Object, decision: ScheduleResult) -> None:
        patch: Object = {}
        if decision.clusters is not None:
            text = applied_placement(binding["spec"]["placement"])
            if annotations_of(binding).get(names.APPLIED_PLACEMENT) != text:
                patch["metadata"] = {"annotations": {names.APPLIED_PLACEMENT: text}}
            clusters = list(decision.clusters)
            if clusters != (binding["spec"].get("clusters") or []):
                patch["spec"] = {"clusters": clusters or None}
        if patch:
            await self._patch(resource, binding, patch)
        status = self._status(binding, decision)
        if status:
            await self._patch(resource, binding, {"status": status}, subresource="status")

    def _status(self, binding: Object, decision: ScheduleResult) -> Object:
        """Return what the status has to become, nothing when it is that already."""
        old: Object = (self._caches.live(binding) or binding).get("status") or {}
        now = wire_now()
        wanted: Object = {
            "conditions": set_condition(
                old.get("conditions"), "Scheduled", decision.condition, now=now
            )
        }
        if decision.succeeded:
            wanted["schedulerObservedGeneration"] = binding["metadata"]["generation"]
            wanted["lastScheduledTime"] = now
            if decision.affinity:
                wanted["schedulerObservingAffinityName"] = decision.affinity
        return {field: value for field, value in wanted.items() if old.get(field) != value}

    async def _patch(
        self, resource: Resource, binding: Object, body: Object, *, subresource: str | None = None
    ) -> None:
        meta: Object = binding["metadata"]
        await self._caches.kube.patch(
            resource,
            meta["name"],
            body,
            kind=PatchType.MERGE,
            namespace=meta.get("namespace"),
            subresource=subresource,
        )


def _enters_or_changes(old: Object | None, new: Object | None) -> bool:
    if new is None or not _is_wanted(new):
        return False
    return old is None or not _is_wanted(old) or generation_changed(old, new)


def _is_wanted(binding: Object) -> bool:
    labels, spec = labels_of(binding), binding["spec"]
    if not labels.get(names.POLICY_ID) and not labels.get(names.CLUSTER_POLICY_ID):
        return False
    if spec.get("schedulerName", names.DEFAULT_SCHEDULER) != names.DEFAULT_SCHEDULER:
        return False
    return not (spec.get("suspension") or {}).get("scheduling")


def _face(cluster: Object) -> object:
    return cluster["spec"], labels_of(cluster), is_going(cluster)
