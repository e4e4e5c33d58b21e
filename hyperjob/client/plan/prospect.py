"""Decide whether a waiting HyperJob fits now, and whether it can ever fit. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from hyperjob.client.clusters import no_device
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.place import could_hold
from hyperjob_engine.placement.search import assign
from hyperjob_engine.reasons.hindrance import ClusterTrouble
from hyperjob_engine.resources import amount_text, is_extended


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Unplaced sub-jobs, of which `needed` must be placed together.

    `standing` are (replicated job, cluster) of the sub-jobs that are placed.
    """

    requests: tuple[PlacementRequest, ...]
    needed: int
    standing: tuple[tuple[str, str], ...] = ()
    max_domains: int | None = None


def has_room(gang: Gang, clusters: Iterable[Cluster]) -> bool:
    """Return whether `needed` sub-jobs fit on the free resources of the clusters."""
    room = FreeRoom.of(clusters, gang.standing)
    return len(assign(gang.requests, room, max_domains=gang.max_domains).assigned) >= gang.needed


def too_large(gang: Gang, clusters: Iterable[Cluster]) -> bool:
    """Return whether the gang does not fit on empty clusters; False while one is not Ready."""
    known = tuple(clusters)
    if any(is_down(cluster) for cluster in known):
        return False
    return not could_hold(gang.requests, known, minimum=gang.needed, max_domains=gang.max_domains)


def is_down(cluster: Cluster) -> bool:
    """Return whether a cluster is unusable because it is not Ready."""
    return cluster.trouble is not None and cluster.trouble.code is ClusterTrouble.NOT_READY


def impossible(wanted: Iterable[SubJob], clusters: Iterable[Cluster]) -> str:
    """Return a message if no cluster has a device, or no node can hold a pod; else an empty text.

    The check of nodes needs the nodes of a cluster, or resource models of an idle cluster.
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
    """Return whether no node of a cluster has an amount of a device; False if unknown."""
    total = cluster.allocatable.get(name, 0)
    if total < amount:
        return True
    if cluster.view is not None:
        return all(node.allocatable.get(name, 0) < amount for node in cluster.view.nodes)
    idle = cluster.free.get(name, 0) == total
    return (
        idle
        and cluster.nodes is not None
        and name in cluster.nodes.resources
        and (cluster.nodes.most(name, amount) == 0)
    )
