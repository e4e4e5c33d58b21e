"""Whether a HyperJob that would wait has room now, and whether it can ever have room. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.model.observed import Cluster
from controller.model.request import Request
from controller.model.resources import amount_text, is_extended
from controller.model.shortage import ClusterTrouble
from controller.model.subjobs import SubJob
from controller.placement.assign import FreeRoom
from controller.placement.place import could_hold
from controller.placement.search import assign
from hyperjob.client.devices import no_device


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Sub-jobs without a place, of which `needed` must be placed together.

    `standing` are (group, cluster) of those that have one.
    """

    requests: tuple[Request, ...]
    needed: int
    standing: tuple[tuple[str, str], ...] = ()
    max_domains: int | None = None


def has_room(gang: Gang, clusters: Iterable[Cluster]) -> bool:
    """Return whether what must go together has room as it is."""
    room = FreeRoom.of(clusters, gang.standing)
    return len(assign(gang.requests, room, max_domains=gang.max_domains).assigned) >= gang.needed


def too_large(gang: Gang, clusters: Iterable[Cluster]) -> bool:
    """Return whether not even empty clusters would hold it; those not Ready may come back."""
    known = tuple(clusters)
    if any(is_down(cluster) for cluster in known):
        return False
    return not could_hold(gang.requests, known, minimum=gang.needed, max_domains=gang.max_domains)


def is_down(cluster: Cluster) -> bool:
    """Return whether a cluster is unusable only while it is not Ready."""
    return cluster.trouble is not None and cluster.trouble.code is ClusterTrouble.NOT_READY


def impossible(wanted: Iterable[SubJob], clusters: Iterable[Cluster]) -> str:
    """Say which device no cluster has, or which pod is larger than every node; empty without any.

    A node counts only where the cluster's resource models describe it and nothing runs there.
    """
    known = tuple(clusters)
    if not known or any(not cluster.allocatable for cluster in known):
        return ""
    devices = {name for each in known for name in each.allocatable if is_extended(name)}
    for sub_job in wanted:
        for group in sub_job.size.pod_groups:
            for name, amount in group.request.items():
                if not is_extended(name) or not amount:
                    continue
                if name not in devices:
                    return no_device(name, devices)
                if all(_on_no_node(cluster, name, amount) for cluster in known):
                    asked = amount_text(name, amount)
                    return (
                        f"no node has {asked} for one pod of {sub_job.name}: make its pods smaller"
                    )
    return ""


def _on_no_node(cluster: Cluster, name: str, amount: int) -> bool:
    total = cluster.allocatable.get(name, 0)
    if total < amount:
        return True
    idle = cluster.free.get(name, 0) == total
    return (
        idle
        and cluster.nodes is not None
        and name in cluster.nodes.resources
        and (cluster.nodes.most(name, amount) == 0)
    )
