"""Why a sub-job has no place, cluster by cluster, in words.

Bounded: a federation of hundreds of clusters still gives a message that a person can read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from controller.model.observed import Cluster
from controller.model.request import Request
from controller.model.resources import (
    PODS,
    Resources,
    accelerator_of,
    amount_text,
    fits,
    lacking,
    order_of,
    subtract,
    total,
)
from controller.placement.assign import Room
from controller.placement.slots import Crowding

_CLUSTERS_SHOWN: Final = 5
_RESOURCES_SHOWN: Final = 2


def explain(
    request: Request, clusters: Iterable[Cluster], room: Room, *, max_domains: int | None
) -> str:
    """Say what a sub-job needs and what each cluster lacks, given the room after all others."""
    known = {cluster.name: cluster for cluster in clusters}
    others = () if request.required else (name for name in known if name not in request.preferred)
    names = [*request.preferred, *sorted(others)]
    texts = _lackings(names, request, known, room, max_domains)
    only = " (clusterPolicy Required)" if request.required else ""
    reasons = "; ".join(texts) or "no cluster is registered"
    return f"needs {need(request.demand)}{only}: {reasons}"


def explain_overflow(
    request: Request, clusters: Iterable[Cluster], room: Room, *, max_domains: int | None
) -> str:
    """Say what the preferred clusters lack for a sub-job that stands on another."""
    known = {cluster.name: cluster for cluster in clusters}
    return "; ".join(_lackings(request.preferred, request, known, room, max_domains))


def _lackings(
    names: Sequence[str],
    request: Request,
    known: Mapping[str, Cluster],
    room: Room,
    max_domains: int | None,
) -> list[str]:
    texts = [
        f"{name} {why_not(request, known.get(name), room, max_domains)}"
        for name in names[:_CLUSTERS_SHOWN]
    ]
    hidden = len(names) - len(texts)
    return [*texts, f"and {hidden} more clusters do not fit either"] if hidden > 0 else texts


def why_not(request: Request, cluster: Cluster | None, room: Room, max_domains: int | None) -> str:
    """Say why a sub-job is not on a cluster, given the room that is left beside all others."""
    if cluster is None:
        return "does not exist"
    return obstacle(request, cluster, room, max_domains) or "has room only without the others"


def obstacle(request: Request, cluster: Cluster, room: Room, max_domains: int | None) -> str:
    """Say what keeps a sub-job from a cluster; empty when nothing does."""
    if not cluster.usable:
        return cluster.reason
    if cluster.name in request.excluded:
        return "is excluded"
    if not request.allows(cluster.name):
        return "is not in clusterNames (clusterPolicy Required)"
    available = room.free.get(cluster.name, cluster.free)
    if not fits(request.demand, available):
        if cluster.unkept is not None and _fits_unkept(request.demand, available, cluster):
            return f"has room, but it is kept for {cluster.kept_for}, which is first in line for it"
        return f"lacks {_lacks(request.demand, available, cluster)}"
    crowding = room.slots.crowding(cluster.name, request.pods)
    if crowding is not None:
        return _crowded(crowding)
    used = room.domains
    if max_domains is not None and len(used) >= max_domains and cluster.name not in used:
        return f"has room but maxDomains {max_domains} is used up"
    return ""


def need(demand: Resources) -> str:
    """Tell the size of a sub-job: its accelerators, or else its native resources."""
    measure = accelerator_of(demand)
    if measure is not None:
        return amount_text(measure, demand[measure])
    names = [name for name in sorted(demand, key=order_of) if name != PODS and demand[name] > 0]
    shown = [amount_text(name, demand[name]) for name in names[:_RESOURCES_SHOWN]]
    return " and ".join(shown) or amount_text(PODS, demand.get(PODS, 0))


def _fits_unkept(demand: Resources, available: Resources, cluster: Cluster) -> bool:
    kept = subtract(cluster.unkept or {}, cluster.free)
    return fits(demand, total((available, kept)))


def _lacks(demand: Resources, free: Resources, cluster: Cluster) -> str:
    missing = lacking(demand, free)
    texts = []
    for name in sorted(missing, key=order_of)[:_RESOURCES_SHOWN]:
        whole = cluster.allocatable.get(name, 0)
        if whole <= 0:
            texts.append(f"{amount_text(name, missing[name])} (has none)")
            continue
        left = f"{_amount(name, max(free.get(name, 0), 0))} free"
        if whole < demand[name]:
            left = f"has {_amount(name, whole)}"
        texts.append(f"{amount_text(name, missing[name])} ({left})")
    return " and ".join(texts)


def _amount(name: str, amount: int) -> str:
    return amount_text(name, amount).split(" ", maxsplit=1)[0]


def _crowded(crowding: Crowding) -> str:
    """Tell what the resource models say; `fits` looked at sums only."""
    size = amount_text(crowding.resource, crowding.amount)
    if not crowding.most:
        return f"has no node with {size} left, by its resource models"
    return (
        f"has nodes for {crowding.most} pods with {size} each, by its resource models,"
        f" and {crowding.wanted} are needed"
    )
