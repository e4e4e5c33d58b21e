"""Why a sub-job has no place, cluster by cluster, in words.

Bounded: a federation of hundreds of clusters still gives a message that a person can read.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from controller.model.observed import Cluster
from controller.model.resources import (
    PODS,
    Resources,
    accelerator_of,
    amount_text,
    fits,
    lacking,
    order_of,
)
from controller.placement.assign import Request

_CLUSTERS_SHOWN: Final = 5
_RESOURCES_SHOWN: Final = 2


def explain(
    request: Request,
    clusters: Iterable[Cluster],
    free: Mapping[str, Resources],
    *,
    domains: Iterable[str],
    max_domains: int | None,
) -> str:
    """Say what a sub-job needs and what each cluster lacks, given what is free after all others."""
    known = {cluster.name: cluster for cluster in clusters}
    used = set(domains)
    full = max_domains is not None and len(used) >= max_domains
    parts = [f"{name} does not exist" for name in request.preferred if name not in known]
    names = sorted(known, key=lambda name: (request.tier(name), name))
    for name in names:
        if request.required and name not in request.preferred:
            continue
        cluster = known[name]
        available = free.get(name, cluster.free)
        if not cluster.usable:
            parts.append(f"{name} {cluster.reason}")
        elif name in request.excluded:
            parts.append(f"{name} is excluded")
        elif not fits(request.demand, available):
            parts.append(f"{name} lacks {_lacks(request.demand, available, cluster)}")
        elif full and name not in used:
            parts.append(f"{name} has room but maxDomains {max_domains} is used up")
        else:
            parts.append(f"{name} has room only without the others")
    if not parts:
        parts = ["no cluster is registered"]
    hidden = len(parts) - _CLUSTERS_SHOWN
    if hidden > 0:
        parts = [*parts[:_CLUSTERS_SHOWN], f"and {hidden} more clusters do not fit either"]
    only = " (clusterPolicy Required)" if request.required else ""
    return f"needs {need(request.demand)}{only}: {'; '.join(parts)}"


def need(demand: Resources) -> str:
    """Tell the size of a sub-job: its accelerators, or else its native resources."""
    measure = accelerator_of(demand)
    if measure is not None:
        return amount_text(measure, demand[measure])
    names = [name for name in sorted(demand, key=order_of) if name != PODS and demand[name] > 0]
    shown = [amount_text(name, demand[name]) for name in names[:_RESOURCES_SHOWN]]
    return " and ".join(shown) or amount_text(PODS, demand.get(PODS, 0))


def _lacks(demand: Resources, free: Resources, cluster: Cluster) -> str:
    missing = lacking(demand, free)
    texts = []
    for name in sorted(missing, key=order_of)[:_RESOURCES_SHOWN]:
        if cluster.allocatable.get(name, 0) <= 0:
            texts.append(f"{amount_text(name, missing[name])} (has none)")
        else:
            left = amount_text(name, max(free.get(name, 0), 0)).split(" ", maxsplit=1)[0]
            texts.append(f"{amount_text(name, missing[name])} ({left} free)")
    return " and ".join(texts)
