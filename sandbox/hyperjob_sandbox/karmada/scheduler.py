"""The scheduler: gives every binding its clusters, unless its scheduling is suspended.

Free capacity plays no part, as in Karmada for Duplicated placements and for bindings without
replicas. A suspended binding has no Scheduled condition at all, as in Karmada.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import key_of
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.controller import Controller, change_of, generation_changed
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.karmada.bindings import target_clusters
from hyperjob_sandbox.karmada.caches import Caches
from hyperjob_sandbox.objects import (
    State,
    annotations_of,
    is_going,
    labels_of,
    matches_labels,
    untolerated_taint,
    with_conditions,
)

_TAINT_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
_SCHEDULED: Final = ("True", "Success", "Binding has been scheduled successfully.")
_DIVIDED: Final = "the embedded Karmada divides no replicas: use Duplicated"
_FIELDS: Final = "the embedded Karmada knows no fieldSelector: use labelSelector or clusterNames"


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The outcome of one attempt: clusters, the Scheduled condition, and the affinity group.

    `clusters` None leaves the binding's clusters as they are.
    """

    clusters: list[Object] | None
    condition: State
    affinity: str


class Scheduler:
    """One worker over bindings, as Karmada has."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.controller = Controller("scheduler", self._schedule, workers=1)
        self.controller.watch(*caches.bindings, when=_enters_or_changes)
        self.controller.watch(
            caches.clusters,
            when=change_of(lambda each: (each["spec"], labels_of(each), is_going(each))),
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
        result = schedule(binding, self._caches.clusters.items())
        patch: Object = {}
        if result.clusters is not None:
            text = applied_placement(binding["spec"]["placement"])
            if annotations_of(binding).get(names.APPLIED_PLACEMENT) != text:
                patch["metadata"] = {"annotations": {names.APPLIED_PLACEMENT: text}}
            if result.clusters != (binding["spec"].get("clusters") or []):
                patch["spec"] = {"clusters": result.clusters or None}
        if patch:
            await self._caches.patch(binding, patch)
        old: Object = (self._caches.live(binding) or binding).get("status") or {}
        now = wire_now()
        status = with_conditions(old, now=now, Scheduled=result.condition)
        if result.condition is _SCHEDULED:
            generation = binding["metadata"]["generation"]
            status |= {"schedulerObservedGeneration": generation, "lastScheduledTime": now}
            if result.affinity:
                status["schedulerObservingAffinityName"] = result.affinity
        if changes := {key: value for key, value in status.items() if old.get(key) != value}:
            await self._caches.patch(binding, {"status": changes}, subresource="status")


def schedule(binding: Object, clusters: Sequence[Object]) -> ScheduleResult:
    """Choose the clusters of a binding, trying its affinity groups in order.

    The group that was observed last comes first. The first refusal is what a failure says.
    """
    groups = affinities(binding)
    observed = (binding.get("status") or {}).get("schedulerObservingAffinityName")
    named = [group.get("affinityName", "") for group in groups]
    first = named.index(observed) if observed in named else 0
    results = [_attempt(binding, clusters, group) for group in groups[first:]]
    return next((result for result in results if result.condition is _SCHEDULED), results[0])


def affinities(binding: Object) -> list[Object]:
    """Return the affinity groups of a binding, at least one."""
    placement: Object = binding["spec"].get("placement") or {}
    groups: list[Object] = placement.get("clusterAffinities") or []
    return groups or [placement.get("clusterAffinity") or {}]


def matches_affinity(affinity: Object, cluster: Object) -> bool:
    """Tell whether a Cluster satisfies a ClusterAffinity; an empty one takes all."""
    name = key_of(cluster)
    return (
        name in (affinity.get("clusterNames") or (name,))
        and name not in (affinity.get("exclude") or ())
        and matches_labels(affinity.get("labelSelector"), labels_of(cluster))
    )


def applied_placement(placement: Object) -> str:
    """Return the text of the applied-placement annotation."""
    return orjson.dumps(placement, option=orjson.OPT_SORT_KEYS).decode()


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


def _attempt(binding: Object, clusters: Sequence[Object], affinity: Object) -> ScheduleResult:
    name = affinity.get("affinityName", "")
    if affinity.get("fieldSelector"):
        return ScheduleResult(None, ("False", "SchedulerError", _FIELDS), name)
    refusals = {key_of(each): _refusal(binding, each, affinity) for each in clusters}
    current = target_clusters(binding)
    feasible = sorted(
        (cluster for cluster, refusal in refusals.items() if refusal is None),
        key=lambda cluster: (cluster not in current, cluster),
    )
    if not feasible:
        counted = sorted(f"{count} {text}" for text, count in Counter(refusals.values()).items())
        why = ", ".join(counted) or "no cluster exists"
        message = f"0/{len(clusters)} clusters are available: {why}."
        return ScheduleResult([], ("False", "NoClusterFit", message), name)
    spec: Object = binding["spec"]
    placement: Object = spec.get("placement") or {}
    replicas = int(spec.get("replicas") or 0)
    kind = (placement.get("replicaScheduling") or {}).get("replicaSchedulingType")
    if replicas and kind == "Divided":
        return ScheduleResult(None, ("False", "SchedulerError", _DIVIDED), name)
    for constraint in placement.get("spreadConstraints") or ():
        feasible = feasible[: constraint.get("maxGroups") or None]
    share: Object = {"replicas": replicas} if replicas else {}
    chosen = [{"name": cluster, **share} for cluster in feasible]
    return ScheduleResult(chosen, _SCHEDULED, name)


def _refusal(binding: Object, cluster: Object, affinity: Object) -> str | None:
    already = key_of(cluster) in target_clusters(binding)
    if not already and not _has_api(cluster, binding["spec"]["resource"]):
        return "cluster(s) did not have the API resource"
    if not matches_affinity(affinity, cluster):
        return "cluster(s) did not match the placement cluster affinity constraint"
    placement: Object = binding["spec"].get("placement") or {}
    taint = untolerated_taint(
        cluster["spec"].get("taints") or (),
        placement.get("clusterTolerations") or (),
        effects=_TAINT_EFFECTS,
    )
    if already or taint is None:
        return None
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"cluster(s) had untolerated taint {{{taint['key']}{value}:{taint['effect']}}}"


def _has_api(cluster: Object, resource: Object) -> bool:
    return any(
        each["kind"] == resource["kind"]
        for enablement in (cluster.get("status") or {}).get("apiEnablements") or ()
        if enablement["groupVersion"] == resource["apiVersion"]
        for each in enablement["resources"]
    )
