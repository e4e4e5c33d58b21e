"""The use of clusters and queues over time, and a bounded memory of it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from hyperjob.client.thinning import Thinned
from hyperjob.client.usage import ClusterUse, QueueUse

SAMPLES: Final = 120

Key: TypeAlias = tuple[str, str]
"""The name of a cluster or a queue, and an accelerator."""
Amounts: TypeAlias = tuple[float, float]
"""Used accelerators, and allocatable ones of a cluster or the share of a queue."""


@dataclass(frozen=True, slots=True)
class Series:
    """The amounts of an accelerator in each span of time; None where they are not known."""

    name: str
    accelerator: str
    points: Sequence[Amounts | None]


@dataclass(frozen=True, slots=True)
class UseOverTime:
    """`times` are the begins of the spans of time, and the end of the last one."""

    times: Sequence[datetime]
    series: Sequence[Series]


@dataclass(frozen=True, slots=True)
class _Sample:
    at: datetime
    clusters: Mapping[Key, Amounts]
    queues: Mapping[Key, Amounts]


class UseMemory:
    """At most 120 samples, evenly chosen over the whole time: they get sparser as it grows."""

    def __init__(self) -> None:
        self.begin: datetime | None = None
        """The time of the first sample."""
        self._samples = Thinned[_Sample](SAMPLES)
        self._last: _Sample | None = None

    def add(
        self, now: datetime, clusters: Iterable[ClusterUse], queues: Iterable[QueueUse]
    ) -> None:
        """Add the present use; equal uses share their memory."""
        self.begin, last = self.begin or now, self._last
        by_cluster, by_queue = _of_clusters(clusters), _of_queues(queues)
        self._last = _Sample(
            now,
            last.clusters if last is not None and last.clusters == by_cluster else by_cluster,
            last.queues if last is not None and last.queues == by_queue else by_queue,
        )
        self._samples.add(self._last)

    def clusters(self, now: datetime) -> UseOverTime:
        """Return the use of clusters; each sample lasts until the next one, the last until now."""
        kept = self._samples.kept
        return _over_time(kept, [each.clusters for each in kept], now)

    def queues(self, now: datetime) -> UseOverTime:
        """Return the use of queues in the same spans of time."""
        kept = self._samples.kept
        return _over_time(kept, [each.queues for each in kept], now)


def together(accelerator: str, found: Sequence[Series]) -> Series:
    """Return the sum of series, point by point."""
    points: list[Amounts | None] = []
    for column in zip(*(one.points for one in found), strict=True):
        known = [point for point in column if point is not None]
        points.append((sum(p[0] for p in known), sum(p[1] for p in known)) if known else None)
    return Series("", accelerator, points)


def _over_time(
    kept: Sequence[_Sample], amounts: Sequence[Mapping[Key, Amounts]], now: datetime
) -> UseOverTime:
    keys = sorted({key for each in amounts for key in each})
    return UseOverTime(
        [*(each.at for each in kept), now],
        [Series(*key, [each.get(key) for each in amounts]) for key in keys],
    )


def _of_clusters(clusters: Iterable[ClusterUse]) -> dict[Key, Amounts]:
    return {
        (use.cluster, use.accelerator): (use.used or 0, use.allocatable)
        for use in clusters
        if use.accelerator and use.allocatable is not None
    }


def _of_queues(queues: Iterable[QueueUse]) -> dict[Key, Amounts]:
    found: dict[Key, Amounts] = {}
    for use in queues:
        if use.accelerator:
            shares = (use.share, use.deserved, use.capability)
            share = next((number for number in shares if number is not None), 0)
            found[use.queue, use.accelerator] = use.used, share
    return found
