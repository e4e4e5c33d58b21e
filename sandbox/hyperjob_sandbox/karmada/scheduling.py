"""Which clusters a binding goes to, and how Karmada says that none fits.

Pure: a binding and all Clusters in, a ScheduleResult out. Free capacity plays no part, as in
Karmada for Duplicated placements and for bindings without replicas; a Divided one is refused.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from hyperjob.api.meta import Object
from hyperjob.kube.resources import key_of
from hyperjob_sandbox.karmada.bindings import target_clusters
from hyperjob_sandbox.member.selectors import matches_labels, untolerated_taint
from hyperjob_sandbox.objects import State, labels_of

_TAINT_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
_DIVIDED: Final = "the embedded Karmada divides no replicas: use Duplicated"
_FIELDS: Final = "the embedded Karmada knows no fieldSelector: use labelSelector or clusterNames"


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The outcome of one attempt: clusters, or the reason why there are none.

    `clusters` None leaves the binding's clusters as they are; `retry` asks for another attempt
    without any change.
    """

    clusters: tuple[Object, ...] | None
    reason: str
    message: str
    affinity: str = ""
    retry: bool = False

    @property
    def succeeded(self) -> bool:
        """Tell whether clusters were found."""
        return self.reason == "Success"

    @property
    def condition(self) -> State:
        """Return status, reason and message of the Scheduled condition."""
        return "True" if self.succeeded else "False", self.reason, self.message


def schedule(binding: Object, clusters: Sequence[Object]) -> ScheduleResult:
    """Choose the clusters of a binding, trying its affinity groups in order.

    The group that was observed last comes first. The first refusal is what a failure says.
    """
    groups = affinities(binding)
    observed = (binding.get("status") or {}).get("schedulerObservingAffinityName")
    named = [group.get("affinityName", "") for group in groups]
    first = named.index(observed) if observed in named else 0
    results: list[ScheduleResult] = []
    for group in groups[first:]:
        results.append(_attempt(binding, clusters, group))
        if results[-1].succeeded:
            return results[-1]
    return results[0]


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


def _attempt(binding: Object, clusters: Sequence[Object], affinity: Object) -> ScheduleResult:
    name = affinity.get("affinityName", "")
    if affinity.get("fieldSelector"):
        return ScheduleResult(None, "SchedulerError", _FIELDS, name, retry=True)
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
        return ScheduleResult((), "NoClusterFit", message, name)
    spec: Object = binding["spec"]
    placement: Object = spec.get("placement") or {}
    replicas = int(spec.get("replicas") or 0)
    kind = (placement.get("replicaScheduling") or {}).get("replicaSchedulingType")
    if replicas and kind == "Divided":
        return ScheduleResult(None, "SchedulerError", _DIVIDED, name, retry=True)
    for constraint in placement.get("spreadConstraints") or ():
        feasible = feasible[: constraint.get("maxGroups") or None]
    share: Object = {"replicas": replicas} if replicas else {}
    chosen = tuple({"name": cluster, **share} for cluster in feasible)
    return ScheduleResult(chosen, "Success", "Binding has been scheduled successfully.", name)


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
