"""Gauges of the accelerators of member clusters, computed from memory for each scrape."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from hyperjob_core.api.quantity import NANO
from hyperjob_core.telemetry.families import Samples
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.resources import Resources, is_extended

Sample: TypeAlias = tuple[tuple[str, ...], float]


def accelerator_samples(
    clusters: Callable[[], Iterable[Cluster]], reserved: Callable[[], Mapping[str, Resources]]
) -> dict[str, Samples]:
    """Return, for each gauge, the function that yields its samples by cluster and type."""

    def allocatable() -> Iterator[Sample]:
        for cluster in clusters():
            yield from _devices(cluster.name, cluster.allocatable)

    def free() -> Iterator[Sample]:
        for cluster in clusters():
            # A reservation and a late summary may count the same pods, and no device is negative.
            free = {name: max(0, amount) for name, amount in cluster.free.items()}
            yield from _devices(cluster.name, free)

    def held() -> Iterator[Sample]:
        sums = reserved()
        for cluster in clusters():
            known = {name: sums.get(cluster.name, {}).get(name, 0) for name in cluster.allocatable}
            yield from _devices(cluster.name, known)

    return {"allocatable": allocatable, "free": free, "reserved": held}


def _devices(cluster: str, amounts: Resources) -> Iterator[Sample]:
    for name, amount in sorted(amounts.items()):
        if is_extended(name):
            yield (cluster, name), amount / NANO
