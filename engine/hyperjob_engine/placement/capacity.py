"""The free resources of a cluster: what its nodes have free, or its summary, minus reservations.

A Cluster's resourceSummary lags behind by its refresh period. A placed sub-job therefore has a
reservation until the summary is known to count its pods; nothing else corrects a summary.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import VCJOB_API_VERSION, VCJOB_KIND
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import (
    at,
    condition,
    count,
    mapping,
    objects,
    string,
    strings,
    timestamp,
)
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster, ReportedStatus
from hyperjob_engine.model.request import Items, PlacementRequest
from hyperjob_engine.model.wants import REPELLING
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.reasons.reason import ClusterTrouble, Trouble
from hyperjob_engine.resources import (
    PODS,
    Resources,
    is_asked,
    parse_resources,
    subtract,
    total,
    whole,
)

LISTED_WITHIN: Final = timedelta(seconds=5)
"""The longest time from Karmada's list of a member's pods to the arrival of its summary here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a summary may lack of a sub-job, or may still have of it after its end.

    So it is since `since`. A summary shows it with the first change that is late enough, and from
    `shown_at` on whatever it says; None: not known yet.
    """

    cluster: str
    demand: Resources
    pods: Items = ()
    since: datetime | None = None
    shown_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Return whether the summary may still lack this sub-job."""
        return self.shown_at is None or now < self.shown_at


def reservation(
    *,
    cluster: str,
    demand: Resources,
    report: ReportedStatus | None,
    complete_since: datetime | None,
    lag: timedelta,
    pods: Items = (),
    summarised: datetime | None = None,
) -> Reservation | None:
    """Return the reservation of a sub-job; None after its end, or if the summary counts its pods.

    The summary counts the pods (as allocated or allocating) after all of them have existed in the
    member for `lag`, the longest refresh period. They exist since the vcjob is Running, by the
    clock of the member, or since `complete_since`, when a report first had all pods. A summary that
    changed after `complete_since`, at `summarised`, counts them earlier.
    """
    if report is not None and report.phase.is_terminal:
        return None
    if is_listed(complete_since, summarised):
        return None
    known = [complete_since] if complete_since is not None else []
    if report is not None and is_complete(demand, report) and report.phase is JobPhase.RUNNING:
        known += [report.since] if report.since is not None else []
    shown_at = min(known) + lag if known else None
    return Reservation(
        cluster=cluster, demand=demand, pods=pods, since=complete_since, shown_at=shown_at
    )


def is_listed(since: datetime | None, summarised: datetime | None) -> bool:
    """Return whether a summary of the time `summarised` shows what was so before, at `since`."""
    if since is None or summarised is None:
        return False
    return since + LISTED_WITHIN <= summarised


def is_complete(demand: Resources, report: ReportedStatus | None) -> bool:
    """Return whether a report counts all pods of a sub-job."""
    return report is not None and whole(report.pods.total) >= demand.get(PODS, 0)


def summarise(raw: Object) -> Cluster:
    """Return a cluster by its Cluster object alone, with its trouble if it is not usable.

    A Cluster without a resourceSummary has no resources; an amount is negative after a cluster has
    lost nodes. `unscheduled` is what its pods without a node request.
    """
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    summary = mapping(status.get("resourceSummary"))
    allocatable, allocated, unscheduled = (
        parse_resources(summary.get(part)) for part in ("allocatable", "allocated", "allocating")
    )
    trouble = _trouble(raw)
    return Cluster(
        name=string(at(raw, "metadata", "name")),
        usable=trouble is None,
        trouble=trouble,
        free=subtract(allocatable, total((allocated, unscheduled))),
        allocatable=allocatable,
        provider=string(spec.get("provider")),
        region=string(spec.get("region")),
        zone=string(spec.get("zone")) or ",".join(strings(spec.get("zones"))),
        not_ready_since=not_ready_since(status),
        unscheduled=unscheduled if allocatable else None,
    )


def seen_by_nodes(cluster: Cluster, view: MemberView) -> Cluster:
    """Return a cluster as its nodes show it: a view knows a new node or pod at once."""
    ground = ground_of(cluster.name, view)
    return replace(cluster, free=ground.free, allocatable=ground.allocatable, view=view)


def promised_on(
    cluster: Cluster,
    demand: Resources,
    pods: Items = (),
    *,
    settling: Resources | None = None,
    ending: Mapping[str, Resources] | None = None,
) -> Cluster:
    """Return a cluster with its reservations subtracted, and what it counts too much.

    The demand of the reservations counts at most as much as the cluster has. An amount is negative
    where other workloads have taken room that was reserved.
    """
    most = cluster.allocatable
    possible = {
        name: min(amount, max(0, most.get(name, 0)))
        for name, amount in demand.items()
        if is_asked(name, most)
    }
    return replace(
        cluster,
        free=subtract(cluster.free, possible),
        reserved_pods=pods,
        settling=settling or {},
        ending=ending or {},
    )


def less(cluster: Cluster, requests: Iterable[PlacementRequest]) -> Cluster:
    """Return a cluster with the requests subtracted."""
    requests = list(requests)
    pods = (item for request in requests for item in request.pods)
    return replace(
        cluster,
        free=subtract(cluster.free, total(each.demand for each in requests)),
        reserved_pods=(*cluster.reserved_pods, *pods),
    )


def _trouble(raw: Object) -> Trouble | None:
    """Return why a Cluster can get no sub-job; None if it can.

    Not Ready comes before taints: Karmada taints such a cluster until it is Ready again.
    """
    status = mapping(raw.get("status"))
    if at(raw, "metadata", "deletionTimestamp") is not None:
        return Trouble(ClusterTrouble.REMOVED)
    ready = condition(status, "Ready")
    if ready.get("status") != "True":
        return Trouble(ClusterTrouble.NOT_READY, string(ready.get("reason")))
    for taint in objects(at(raw, "spec", "taints")):
        if string(taint.get("effect")) in REPELLING:
            return Trouble(ClusterTrouble.TAINTED, f"{string(taint.get('key'))}:{taint['effect']}")
    if not _serves_vcjobs(status):
        return Trouble(ClusterTrouble.NO_VCJOB_API)
    if not mapping(status.get("resourceSummary")):
        return Trouble(ClusterTrouble.NO_RESOURCE_SUMMARY)
    if count(at(status, "nodeSummary", "totalNum")) and not count(
        at(status, "nodeSummary", "readyNum")
    ):
        return Trouble(ClusterTrouble.NO_READY_NODE)
    return None


def not_ready_since(status: Object) -> datetime | None:
    """Return since when a Cluster is not Ready; None if it is Ready or has no condition Ready."""
    ready = condition(status, "Ready")
    if ready.get("status") not in ("False", "Unknown"):
        return None
    return timestamp(ready.get("lastTransitionTime"))


def _serves_vcjobs(status: Mapping[str, object]) -> bool:
    return any(
        enablement.get("groupVersion") == VCJOB_API_VERSION
        and any(item.get("kind") == VCJOB_KIND for item in objects(enablement.get("resources")))
        for enablement in objects(status.get("apiEnablements"))
    )
