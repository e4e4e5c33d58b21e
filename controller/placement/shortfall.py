"""Why accelerators cannot be shared out, or not over preferred clusters alone, in words.

Bounded, as the explanations of single sub-jobs are.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from controller.model.observed import Cluster
from controller.placement.assign import Room
from controller.placement.share import Share, Wish, capacities, most_together
from controller.placement.shortage import why_not

_CLUSTERS_SHOWN: Final = 5


def explain_shortfall(
    wish: Wish, clusters: Iterable[Cluster], room: Room, *, max_domains: int | None
) -> str:
    """Say how many accelerators are wanted, how many fit, and what each cluster has room for."""
    known = {cluster.name: cluster for cluster in clusters}
    capacity = capacities(wish, room)
    together = most_together(capacity, room, max_domains=max_domains)
    others = () if wish.required else (name for name in known if name not in wish.preferred)
    names = sorted(
        dict.fromkeys([*wish.preferred, *others]), key=lambda name: (-capacity.get(name, 0), name)
    )
    texts = [
        _room_of(wish, name, capacity.get(name, 0), known.get(name), room, together, max_domains)
        for name in names[:_CLUSTERS_SHOWN]
    ]
    if len(names) > len(texts):
        texts.append(f"and {len(names) - len(texts)} more clusters")
    limit = "" if max_domains is None else f" (maxDomains {max_domains})"
    only = " (clusterPolicy Required)" if wish.required else ""
    found = sum(wish.fixed + capacity[name] * wish.per_pod for name in together)
    fitting = f"{found} fit on {_count(len(together))}{limit}"
    fewest = next((n for n in range(1, wish.most_parts + 1) if wish.pods_of(n) is not None), 0)
    if not together:
        fitting = "none fit now"
    elif fewest > len(together):
        fitting = f"that takes {_count(fewest)}, {_count(len(together))} can be used{limit}"
    reasons = "; ".join(texts) or "no cluster is registered"
    return f"needs {wish.accelerators} {wish.kind}{_whole(wish)}{only}, {fitting}: {reasons}"


def explain_overflow_of(wish: Wish, clusters: Iterable[Cluster], shares: Sequence[Share]) -> str:
    """Say what the preferred clusters take of accelerators that they cannot hold alone."""
    known = {cluster.name: cluster for cluster in clusters}
    taken = {item.cluster: wish.fixed + item.pods * wish.per_pod for item in shares}
    texts = []
    for name in wish.preferred[:_CLUSTERS_SHOWN]:
        if name in taken:
            texts.append(f"{name} has room for {taken[name]} of {wish.accelerators} {wish.kind}")
        elif name not in known:
            texts.append(f"{name} does not exist")
        elif not known[name].usable:
            texts.append(f"{name} {known[name].reason}")
        else:
            texts.append(f"{name} has too little room")
    return "; ".join(texts)


def _room_of(
    wish: Wish,
    name: str,
    pods: int,
    cluster: Cluster | None,
    room: Room,
    together: Sequence[str],
    max_domains: int | None,
) -> str:
    if not pods:
        least = wish.request(1)
        return f"{name} {why_not(least, cluster, room, max_domains)}"
    text = f"{name} has room for {wish.fixed + pods * wish.per_pod}"
    return text if name in together else f"{text} but maxDomains {max_domains} is used up"


def _whole(wish: Wish) -> str:
    if wish.fixed:
        return f" in sub-jobs of {wish.fixed} and a multiple of {wish.per_pod}"
    return f" in multiples of {wish.per_pod}" if wish.per_pod > 1 else ""


def _count(number: int) -> str:
    return "1 cluster" if number == 1 else f"{number} clusters"
