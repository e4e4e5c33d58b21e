"""What a HyperJob that waits for room could use, and the room that is kept for the first of them.

Says who may use what; who is first is decided elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controller.model.observed import Cluster, Kept
from controller.model.request import Request
from controller.model.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Sub-jobs without a place, of which `needed` must be placed together.

    `standing` are (group, cluster) of those that have one. `begun`: some of the gang stand, so it
    goes before anybody of whom nothing does; else two of them could wait for each other.
    """

    requests: tuple[Request, ...]
    needed: int
    standing: tuple[tuple[str, str], ...] = ()
    max_domains: int | None = None
    begun: bool = False


def beside(clusters: Iterable[Cluster], kept: Kept | None) -> tuple[Cluster, ...]:
    """Take what is kept for somebody else off what is free."""
    if kept is None:
        return tuple(clusters)
    return tuple(
        _less(cluster, kept.room[cluster.name], kept.owner)
        if cluster.usable and cluster.name in kept.room
        else cluster
        for cluster in clusters
    )


def without(free: Resources, wanted: Resources) -> Resources:
    """Return what is free beside as much of what is wanted as is free."""
    taken = {name: min(amount, max(0, free.get(name, 0))) for name, amount in wanted.items()}
    return {**free, **{name: free[name] - amount for name, amount in taken.items() if amount}}


def _less(cluster: Cluster, wanted: Mapping[str, int], owner: str) -> Cluster:
    return replace(cluster, free=without(cluster.free, wanted), unkept=cluster.free, kept_for=owner)
