"""Why a sub-job, or a split, has no place or not another one, cluster by cluster.

The number of clusters in an explanation is bounded: a message about hundreds of them stays
readable. No decision depends on `alternatives`, which `kubectl hyperjob why` shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.text import alike, listed, nearest
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest, kinds_of
from hyperjob_engine.placement.nodeshortage import label_hint, mismatch, node_shortage
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import SplitShare, Wish, capacities, largest_clusters
from hyperjob_engine.reasons.reason import closed_text, trouble_text
from hyperjob_engine.resources import (
    PODS,
    Resources,
    accelerator_of,
    amount_only,
    amount_text,
    fits,
    is_asked,
    is_device,
    is_extended,
    lacking,
    order_of,
)

_CLUSTER: Final = "cluster "
_CLUSTERS_SHOWN: Final = 5
_RESOURCES_SHOWN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """Why one cluster does not take a sub-job: `text` follows the cluster's name.

    `has_room`: it has room for the sub-job alone. `too_small`: it lacks resources, or its nodes do.
    `has_none`: it has nothing of such a resource. `closed`: it has closed the queue. `cause`: what
    keeps the sub-job away whatever is free, as a sentence without the cluster.
    """

    cluster: str
    text: str
    has_room: bool = False
    too_small: bool = False
    has_none: bool = False
    closed: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why a sub-job has no place now.

    `in_gang`: it has room, and the rest of its gang has none. `absent`: the text explains the whole
    HyperJob. `closed`: every cluster that it may use has closed its queue. `mismatch`: no cluster
    has a node for it by labels and taints, can be used, or exists.
    """

    text: str
    in_gang: bool = False
    absent: bool = False
    closed: bool = False
    mismatch: bool = False


def explain(request: PlacementRequest, room: Room, *, max_domains: int | None) -> Shortage:
    """Return the demand of a sub-job and what each cluster lacks; `room` has all others placed."""
    known = room.clusters
    others = () if request.required else (name for name in known if name not in request.preferred)
    names = [*request.preferred, *sorted(others)]
    found = _hindrances(names, request, room, max_domains)
    if absent := _absent(request, found, known.values()):
        return Shortage(text=absent, absent=True)
    hidden = len(names) - len(found)
    if (
        any(each.cause for each in found)
        and all(each.cause or each.has_none for each in found)
        and all(mismatch(room.nodes(name), request.pods) for name in names[_CLUSTERS_SHOWN:])
    ):
        grounds = filter(None, map(room.nodes, room.free))
        text = _causes(found, hidden) + label_hint(grounds, request.pods)
        return Shortage(text=text, absent=True, mismatch=True)
    only = " (clusterPolicy Required)" if request.required else ""
    reasons = _listed(found, hidden=hidden) or "no cluster is registered"
    return Shortage(
        text=f"needs {need_text(request.demand)}{only}: {reasons}",
        closed=bool(found) and all(each.closed for each in found),
    )


def explain_overflow(request: PlacementRequest, room: Room, *, max_domains: int | None) -> str:
    """Return what the preferred clusters lack for a sub-job on another cluster."""
    found = _hindrances(request.preferred, request, room, max_domains)
    return _listed(found, hidden=len(request.preferred) - len(found))


def need_text(demand: Resources) -> str:
    """Return the size of a sub-job: its accelerators, else its native resources."""
    measure = accelerator_of(demand)
    if measure is not None:
        return amount_text(measure, demand[measure])
    names = [name for name in sorted(demand, key=order_of) if name != PODS and demand[name] > 0]
    shown = [amount_text(name, demand[name]) for name in names[:_RESOURCES_SHOWN]]
    return " and ".join(shown) or amount_text(PODS, demand.get(PODS, 0))


def _listed(found: Iterable[Hindrance], *, hidden: int) -> str:
    """Return what each cluster lacks; clusters without any of a resource come last."""
    nearest_first = sorted(found, key=lambda each: each.has_none)
    texts = list(alike((each.cluster, each.text) for each in nearest_first))
    if hidden > 0:
        texts.append(f"and {hidden} more clusters do not fit either")
    return "; ".join(texts)


def _causes(found: Sequence[Hindrance], hidden: int) -> str:
    """Return what keeps a sub-job from all clusters: each cause with its clusters, first causes."""
    by_cause: dict[str, list[str]] = {}
    for each in found:
        if each.cause:
            by_cause.setdefault(each.cause, []).append(each.cluster)
    rest = [each for each in found if not each.cause]
    if len(by_cause) == 1 and not rest:
        return next(iter(by_cause))
    texts = [
        cause if cause.startswith(_CLUSTER) else f"{cause} (in {listed(names)})"
        for cause, names in by_cause.items()
    ]
    return "; ".join([*texts, *filter(None, [_listed(rest, hidden=hidden)])])


def _hindrances(
    names: Sequence[str], request: PlacementRequest, room: Room, max_domains: int | None
) -> list[Hindrance]:
    return [why_not(request, name, room, max_domains) for name in names[:_CLUSTERS_SHOWN]]


def why_not(request: PlacementRequest, name: str, room: Room, max_domains: int | None) -> Hindrance:
    """Return why a sub-job is not on a cluster; `room` has all others placed."""
    cluster = room.clusters.get(name)
    if cluster is None:
        text = _no_cluster(name, room.clusters)
        return Hindrance(cluster=name, text=text, cause=f"{_CLUSTER}{name} {text}")
    found = obstacle(request, cluster, room, max_domains)
    text = "has room for this sub-job, but not for the others on it"
    return found or Hindrance(cluster=name, text=text, has_room=True)


def _no_cluster(name: str, known: Iterable[str]) -> str:
    near = nearest(name, sorted(known))
    return "does not exist" + (f"; did you mean {near}?" if near else "")


def obstacle(
    request: PlacementRequest, cluster: Cluster, room: Room, max_domains: int | None
) -> Hindrance | None:
    """Return why a cluster cannot take a sub-job; None if it can."""
    name = cluster.name
    if not cluster.usable:
        text = trouble_text(cluster.trouble)
        return Hindrance(cluster=name, text=text, cause=f"{_CLUSTER}{name} {text}")
    if request.closed is not None and name in request.closed.clusters:
        return Hindrance(cluster=name, text=closed_text(request.closed.name), closed=True)
    if name in request.excluded:
        return Hindrance(cluster=name, text="is excluded")
    if not request.allows(name):
        return Hindrance(cluster=name, text="is not in clusterNames (clusterPolicy Required)")
    ground = room.nodes(name)
    if cause := mismatch(ground, request.pods):
        text = f"takes none of its pods: {cause}"
        return Hindrance(cluster=name, text=text, too_small=True, cause=cause)
    available = room.free.get(name, cluster.free)
    if not fits(request.demand, available):
        return _lacking(request.demand, available, cluster)
    crowded = room.unfit(name, request.pods)
    if ground is not None and crowded is not None:
        return Hindrance(cluster=name, text=node_shortage(ground, crowded), too_small=True)
    used = room.domains
    if max_domains is not None and len(used) >= max_domains and name not in used:
        text = f"has room but maxDomains {max_domains} is used up"
        return Hindrance(cluster=name, text=text, has_room=True)
    return None


def _lacking(demand: Resources, free: Resources, cluster: Cluster) -> Hindrance:
    """Return the resources that a cluster lacks for a demand, accelerators first, at most two.

    Where all that the cluster has is too little, both numbers are of that, else of what is free.
    """
    missing, texts, has_none = lacking(demand, free), [], False
    for name in sorted(missing, key=order_of)[:_RESOURCES_SHOWN]:
        whole, lacks = max(cluster.allocatable.get(name, 0), 0), missing[name]
        if whole <= 0:
            has_none, has = True, "has none"
        elif whole < demand[name]:
            has, lacks = f"has {amount_only(name, whole)}", demand[name] - whole
        else:
            has = f"{amount_only(name, max(free.get(name, 0), 0))} free"
        texts.append(f"{amount_text(name, lacks)} ({has})")
    text = f"lacks {' and '.join(texts)}"
    return Hindrance(cluster=cluster.name, text=text, too_small=True, has_none=has_none)


def _absent(
    request: PlacementRequest, found: Sequence[Hindrance], clusters: Iterable[Cluster]
) -> str:
    """Return which device no cluster has, or no node enough of for one pod; empty if one may have.

    What no cluster has, the first cluster lacks too: the first hindrance is enough.
    """
    known = tuple(clusters)
    if not found or not found[0].too_small or not all(each.allocatable for each in known):
        return ""  # the first cluster has room, or a cluster reports no resources
    asked = [
        name
        for name, amount in request.demand.items()
        if amount > 0 and is_extended(name) and is_asked(name, {})  # the others may be unlisted
    ]
    for name in asked:
        if all(each.allocatable.get(name, 0) <= 0 for each in known):
            amounts = (pair for each in known for pair in each.allocatable.items())
            devices = {each for each, amount in amounts if amount > 0 and is_extended(each)}
            near = nearest(name, sorted(devices))
            there = sorted(filter(is_device, devices)) or sorted(devices)
            others = f"; the clusters have {listed(there)}" if there else ""
            hint = f"; did you mean {near}?" if near else others
            return f"no cluster has {name}{hint}"
        pods = kinds_of(request.pods)
        most = max((dict(kind.request).get(name, 0) for kind in pods), default=0)
        large = [each for each in known if each.allocatable.get(name, 0) >= most]
        if large and not any(_may_have_node(each, name, most) for each in large):
            wanted = amount_text(name, most)
            group = f"replicatedJob {request.group}"
            return f"no node has {wanted} for one pod of {group}: make its pods smaller"
    return ""


def _may_have_node(cluster: Cluster, name: str, amount: int) -> bool:
    """Return whether a node of a cluster has an amount of a device when empty, or is not known."""
    nodes = cluster.view.nodes if cluster.view is not None else None
    return nodes is None or any(node.allocatable.get(name, 0) >= amount for node in nodes)


def explain_shortfall(wish: Wish, room: Room, *, max_domains: int | None) -> str:
    """Return the wanted accelerators, how many fit on how many clusters, and what each offers."""
    capacity = capacities(wish, room)
    together = largest_clusters(capacity, room, max_domains=max_domains)
    preferred, required = wish.like.preferred, wish.like.required
    names = sorted(
        {*preferred, *(() if required else room.clusters)},
        key=lambda name: (-capacity.get(name, 0), name),
    )
    offers: list[tuple[str, str]] = []
    for name in names[:_CLUSTERS_SHOWN]:
        pods = capacity.get(name, 0)
        text = f"has room for {wish.fixed + pods * wish.per_pod}"
        if not pods:
            text = why_not(wish.request(1), name, room, max_domains).text
        elif name not in together:
            text = f"{text} but maxDomains {max_domains} is used up"
        offers.append((name, text))
    texts = list(alike(offers))
    if len(names) > len(offers):
        texts.append(f"and {len(names) - len(offers)} more clusters")
    limit = "" if max_domains is None else f" (maxDomains {max_domains})"
    only = " (clusterPolicy Required)" if required else ""
    most = sum(wish.fixed + capacity[name] * wish.per_pod for name in together)
    fitting = (
        f"{most} fit on {_clusters_text(len(together))}{limit}" if together else "none fit now"
    )
    fewest = next((n for n in range(1, wish.most_parts + 1) if wish.pods_of(n) is not None), 0)
    if together and fewest > len(together):
        takes, used = _clusters_text(fewest), _clusters_text(len(together))
        fitting = f"that takes {takes}, {used} can be used{limit}"
    reasons = "; ".join(texts) or "no cluster is registered"
    wanted = f"{wish.accelerators} {wish.kind}{_multiple_text(wish)}"
    return f"needs {wanted}{only}, {fitting}: {reasons}"


def _multiple_text(wish: Wish) -> str:
    """Return the form in which the accelerators of a split can be divided; empty if in any."""
    if wish.fixed:
        return f" in sub-jobs of {wish.fixed} and a multiple of {wish.per_pod}"
    return f" in multiples of {wish.per_pod}" if wish.per_pod > 1 else ""


def _clusters_text(number: int) -> str:
    return "1 cluster" if number == 1 else f"{number} clusters"


def explain_overflow_of(
    wish: Wish, known: Mapping[str, Cluster], shares: Sequence[SplitShare]
) -> str:
    """Return how many of the accelerators each preferred cluster takes, or why none."""
    taken = {item.cluster: wish.fixed + item.pods * wish.per_pod for item in shares}
    texts = []
    for name in wish.like.preferred[:_CLUSTERS_SHOWN]:
        if name in taken:
            text = f"has room for {taken[name]} of {wish.accelerators} {wish.kind}"
        elif name not in known:
            text = _no_cluster(name, known)
        else:
            text = trouble_text(known[name].trouble) or "has too little room"
        texts.append(f"{name} {text}")
    return "; ".join(texts)


def alternatives(
    request: PlacementRequest,
    chosen: str,
    room: Room,
    *,
    max_domains: int | None,
    unplaced: str = "has room, but not for all that must be placed together",
    runs: bool = False,
) -> dict[str, Hindrance]:
    """Return the reason against each cluster but the chosen one (empty: none was chosen).

    `room` is the room with all other sub-jobs placed and without this one. `unplaced` is the reason
    against clusters with room if none was chosen. `runs`: the sub-job exists on the chosen cluster.
    """
    found = {}
    for _, cluster in sorted(room.clusters.items()):
        if cluster.name == chosen:
            continue
        hindrance = obstacle(request, cluster, room, max_domains)
        if hindrance is None:
            text = _less_good(request, chosen, cluster.name, room) if chosen else unplaced
            if runs:
                text = "has room, but running sub-jobs stay where they are"
            hindrance = Hindrance(cluster=cluster.name, text=text, has_room=True)
        found[cluster.name] = hindrance
    return found


def _less_good(request: PlacementRequest, chosen: str, other: str, room: Room) -> str:
    """Return the first rule by which the chosen cluster is better."""
    if chosen not in room.free:
        return "has room, but the sub-job is placed already"
    best, cost = room.cost(request, chosen), room.cost(request, other)
    if cost.tier > best.tier:
        if other in request.preferred:
            return f"has room, but comes after {chosen} in clusterNames"
        return "has room, but is not in clusterNames"
    if cost < best:
        return "has room, but another sub-job needs it"
    if cost.moves > best.moves:
        return f"has room, but the sub-job was on {chosen} before"
    if cost.siblings > best.siblings:
        return f"has room, but has a sub-job of {request.group} already"
    if cost.distance > best.distance:
        return "has room, but is farther from the other sub-jobs"
    if cost.left > best.left:
        return f"has room, but fits less closely than {chosen}"
    return f"has as much room as {chosen}, which comes first by name"
