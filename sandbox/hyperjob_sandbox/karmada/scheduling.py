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
from hyperjob_sandbox.karmada.bindings import target_clusters
from hyperjob_sandbox.member.selectors import matches_affinity, untolerated_taint

SUCCESS_MESSAGE: Final = "Binding has been scheduled successfully."
_TAINT_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
_KEY_ORDER: Final = (
    # the field order of Karmada's types, which the applied-placement annotation shows
    "affinityName",
    "clusterAffinity",
    "clusterAffinities",
    "clusterTolerations",
    "spreadConstraints",
    "workloadAffinity",
    "replicaScheduling",
    "labelSelector",
    "fieldSelector",
    "clusterNames",
    "exclude",
    "spreadByField",
    "spreadByLabel",
    "maxGroups",
    "minGroups",
    "replicaSchedulingType",
    "replicaDivisionPreference",
    "weightPreference",
)
_RANK: Final = {key: rank for rank, key in enumerate(_KEY_ORDER)}


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
    def condition(self) -> tuple[str, str, str]:
        """Return status, reason and message of the Scheduled condition."""
        return "True" if self.succeeded else "False", self.reason, self.message


def schedule(binding: Object, clusters: Sequence[Object]) -> ScheduleResult:
    """Choose the clusters of a binding, trying its affinity groups in order."""
    placement: Object = binding["spec"].get("placement") or {}
    groups: list[Object] = placement.get("clusterAffinities") or []
    if not groups:
        return _attempt(binding, clusters, placement.get("clusterAffinity"), "")
    first: ScheduleResult | None = None
    for group in groups[_first_group(binding, groups) :]:
        decision = _attempt(binding, clusters, group, group["affinityName"])
        if decision.succeeded:
            return decision
        first = first or decision
    assert first is not None
    return first


def applied_placement(placement: Object) -> str:
    """Return the text of the applied-placement annotation."""
    return orjson.dumps(_ordered(placement)).decode()


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (_RANK.get(key, len(_RANK)), key))
        return {key: _ordered(value[key]) for key in keys if value[key] not in (None, "", [])}
    if isinstance(value, list):
        return [_ordered(each) for each in value]
    return value


def _first_group(binding: Object, groups: list[Object]) -> int:
    status: Object = binding.get("status") or {}
    triggered, last = (
        binding["spec"].get("rescheduleTriggeredAt"),
        status.get("lastScheduledTime"),
    )
    if triggered and last and triggered > last:
        return 0
    observed = status.get("schedulerObservingAffinityName")
    for index, group in enumerate(groups):
        if group["affinityName"] == observed:
            return index
    return 0


def _attempt(
    binding: Object, clusters: Sequence[Object], affinity: Object | None, affinity_name: str
) -> ScheduleResult:
    refusals: list[str] = []
    feasible: list[Object] = []
    for cluster in clusters:
        refusal = _refusal(binding, cluster, affinity)
        if refusal is None:
            feasible.append(cluster)
        else:
            refusals.append(refusal)
    if not feasible:
        counted = sorted(f"{count} {text}" for text, count in Counter(refusals).items())
        why = ", ".join(counted) or "no cluster exists"
        message = f"0/{len(clusters)} clusters are available: {why}."
        return ScheduleResult((), "NoClusterFit", message, affinity_name)
    current = target_clusters(binding)
    feasible.sort(key=lambda each: (each["metadata"]["name"] not in current, _name(each)))
    try:
        chosen = _select(binding, feasible)
    except _UnschedulableError as error:
        return ScheduleResult(None, "SchedulerError", str(error), affinity_name, retry=True)
    return ScheduleResult(chosen, "Success", SUCCESS_MESSAGE, affinity_name)


class _UnschedulableError(Exception):
    """Karmada's scheduler gives up for now."""


def _name(cluster: Object) -> str:
    return str(cluster["metadata"]["name"])


def _refusal(binding: Object, cluster: Object, affinity: Object | None) -> str | None:
    placement: Object = binding["spec"].get("placement") or {}
    already = _name(cluster) in target_clusters(binding)
    if not already and not _has_api(cluster, binding["spec"]["resource"]):
        return "cluster(s) did not have the API resource"
    if not matches_affinity(affinity, cluster):
        return "cluster(s) did not match the placement cluster affinity constraint"
    evicting = binding["spec"].get("gracefulEvictionTasks") or ()
    if any(task.get("fromCluster") == _name(cluster) for task in evicting):
        return "cluster(s) is in the process of eviction"
    if not already:
        taint = untolerated_taint(
            cluster["spec"].get("taints") or (),
            placement.get("clusterTolerations") or (),
            effects=_TAINT_EFFECTS,
        )
        if taint is not None:
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"cluster(s) had untolerated taint {{{taint['key']}{value}:{taint['effect']}}}"
    return None


def _has_api(cluster: Object, resource: Object) -> bool:
    for enablement in (cluster.get("status") or {}).get("apiEnablements") or ():
        if enablement["groupVersion"] == resource["apiVersion"]:
            return any(each["kind"] == resource["kind"] for each in enablement["resources"])
    return False


def _select(binding: Object, feasible: list[Object]) -> tuple[Object, ...]:
    spec: Object = binding["spec"]
    placement: Object = spec.get("placement") or {}
    replicas = int(spec.get("replicas") or 0)
    scheduling: Object = placement.get("replicaScheduling") or {}
    if replicas and scheduling.get("replicaSchedulingType") == "Divided":
        raise _UnschedulableError("the embedded Karmada divides no replicas: use Duplicated")
    for constraint in placement.get("spreadConstraints") or ():
        if constraint.get("spreadByField") == "cluster":
            if len(feasible) < int(constraint.get("minGroups") or 1):
                raise _UnschedulableError(
                    "the number of feasible clusters is less than spreadConstraint.MinGroups"
                )
            feasible = feasible[: int(constraint.get("maxGroups") or 0)]
    share: Object = {"replicas": replicas} if replicas else {}
    return tuple({"name": _name(each), **share} for each in feasible)
