"""The scheduler: gives every binding its clusters, unless its scheduling is suspended.

Suspension is a filter on what comes in, as in Karmada: a suspended binding has no Scheduled
condition at all. It must never look at a binding that no policy claims.
"""

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube, PatchType
from hyperjob.kube.errors import NotFound
from hyperjob.kube.events import EventRecorder
from hyperjob.kube.resources import key_of
from hyperjob_sandbox.controller import Controller, RetryError, wire_now
from hyperjob_sandbox.karmada import names, works
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.karmada.scheduling import ScheduleResult, applied_placement, schedule
from hyperjob_sandbox.member.selectors import matches_affinity

_FIRST_RETRY, _SLOWEST_RETRY = 1.0, 10.0


class Scheduler:
    """One worker over bindings, as Karmada has."""

    def __init__(self, kube: Kube, caches: Caches, recorder: EventRecorder) -> None:
        self._kube = kube
        self._caches = caches
        self._recorder = recorder
        self.controller = Controller(
            "scheduler",
            self._schedule,
            workers=1,
            first_retry=_FIRST_RETRY,
            slowest_retry=_SLOWEST_RETRY,
        )
        caches.bindings.add_handler(self._on_binding)
        caches.cluster_bindings.add_handler(self._on_binding)
        caches.clusters.add_handler(self._on_cluster)

    def _on_binding(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is None or not _is_wanted(new):
            return
        entered = old is None or not _is_wanted(old)
        if entered or old["metadata"].get("generation") != new["metadata"].get("generation"):  # type: ignore[index]  # entered says that old is there
            self.controller.add(key_of(new))

    def _on_cluster(self, event: EventType, old: Object | None, new: Object | None) -> None:
        """Try bindings again that a changed cluster might take, and only those."""
        cluster = new or old
        assert cluster is not None
        if old is not None and new is not None and _face(old) == _face(new):
            return
        for binding in [*self._caches.bindings.items(), *self._caches.cluster_bindings.items()]:
            if _is_wanted(binding) and _concerns(binding, cluster):
                self.controller.add(key_of(binding))

    async def _schedule(self, key: str) -> None:
        binding = self._caches.binding(key)
        if binding is None or not binding["spec"].get("placement"):
            return
        if binding["metadata"].get("deletionTimestamp"):
            return
        decision = schedule(binding, self._caches.clusters.items())
        try:
            await self._write(key, binding, decision)
        except NotFound:
            return
        if not decision.succeeded:
            self._recorder.event(
                binding, "Warning", "ScheduleBindingFailed", "Scheduling", decision.message
            )
        if decision.retry:
            raise RetryError(decision.message)

    async def _write(self, key: str, binding: Object, decision: ScheduleResult) -> None:
        patch: Object = {}
        text = applied_placement(binding["spec"]["placement"])
        if (binding["metadata"].get("annotations") or {}).get(names.APPLIED_PLACEMENT) != text:
            patch["metadata"] = {"annotations": {names.APPLIED_PLACEMENT: text}}
        if decision.clusters is not None:
            clusters = list(decision.clusters)
            if clusters != (binding["spec"].get("clusters") or []):
                patch["spec"] = {"clusters": clusters or None}
        if not decision.succeeded and decision.clusters is None:
            patch = {}
        if patch:
            await self._patch(key, patch)
        status = self._status(binding, decision)
        if status:
            await self._patch(key, {"status": status}, subresource="status")

    def _status(self, binding: Object, decision: ScheduleResult) -> Object:
        """Return what the status has to become, nothing when it is that already."""
        old: Object = (self._caches.binding(key_of(binding)) or binding).get("status") or {}
        now = wire_now()
        wanted: Object = {
            "conditions": works.set_condition(
                old.get("conditions") or [], "Scheduled", decision.condition, now=now
            )
        }
        if decision.succeeded:
            wanted["schedulerObservedGeneration"] = binding["metadata"]["generation"]
            wanted["lastScheduledTime"] = now
            if decision.affinity:
                wanted["schedulerObservingAffinityName"] = decision.affinity
        return {field: value for field, value in wanted.items() if old.get(field) != value}

    async def _patch(self, key: str, body: Object, *, subresource: str | None = None) -> None:
        namespace, _, name = key.rpartition("/")
        await self._kube.patch(
            self._caches.binding_resource(key),
            name,
            body,
            kind=PatchType.MERGE,
            namespace=namespace or None,
            subresource=subresource,
        )


def _is_wanted(binding: Object) -> bool:
    labels = binding["metadata"].get("labels") or {}
    if not labels.get(names.POLICY_ID) and not labels.get(names.CLUSTER_POLICY_ID):
        return False
    if binding["spec"].get("schedulerName", names.DEFAULT_SCHEDULER) != names.DEFAULT_SCHEDULER:
        return False
    return not (binding["spec"].get("suspension") or {}).get("scheduling")


def _face(cluster: Object) -> tuple[object, ...]:
    meta: Object = cluster["metadata"]
    return cluster["spec"], meta.get("labels"), meta.get("deletionTimestamp")


def _concerns(binding: Object, cluster: Object) -> bool:
    placement: Object = binding["spec"].get("placement") or {}
    groups = placement.get("clusterAffinities") or [placement.get("clusterAffinity")]
    return any(matches_affinity(group, cluster) for group in groups)
