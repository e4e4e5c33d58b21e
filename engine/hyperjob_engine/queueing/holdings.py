"""The holdings of HyperJobs: shares of queues, room on clusters, reservations.

A reservation belongs to a sub-job that holds a share and does not exist yet. Each round subtracts
the reservations before it admits anything: on the cluster for which the engine admitted the
sub-job, else on any cluster with room.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from sys import intern

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.queueing.entries import Entry
from hyperjob_engine.queueing.occupancy import Occupancy
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.shares import Shares
from hyperjob_engine.queueing.units import QueuedSubJob
from hyperjob_engine.resources import Resources


class Holdings:
    """The sub-jobs that hold a share, by HyperJob."""

    def __init__(
        self,
        entries: Mapping[str, Entry],
        shares: Shares,
        *,
        lag: timedelta,
        counts: Callable[[str], bool],
    ) -> None:
        """`lag` and `counts` are those of the queue cache."""
        self.holders: dict[str, None] = {}
        self.missing: dict[str, None] = {}
        self.occupancy = Occupancy(lag=lag)
        self.changed = False
        self._entries = entries
        self._shares = shares
        self._counts = counts
        self._jobs: set[str] = set()

    def holds(self, job: str) -> bool:
        """Return whether a sub-job, `namespace/name`, holds a share."""
        return job in self._jobs

    def update(self, key: str, entry: Entry, *, now: datetime) -> None:
        """Update the holdings of a HyperJob from its sub-jobs and its grants."""
        unit = entry.unit
        holds = (unit.held | entry.granted) - unit.ended
        entry.reserved_clusters = {
            name: cluster
            for name, cluster in entry.reserved_clusters.items()
            if name in holds and name not in unit.made
        }
        before = entry.holding
        entry.hold(
            {
                part.name: (part, entry.cluster_of(part.name))
                for part in unit.parts
                if part.name in holds
            }
        )
        _mark(self.holders, key, marked=bool(entry.holding))
        _mark(self.missing, key, marked=any(name not in unit.made for name in entry.holding))
        if entry.holding != before:
            self._count(key.partition("/")[0], before, entry.holding, now)

    def reserved(self, *, but: str) -> dict[str, list[PlacementRequest]]:
        """Return the sub-jobs of other HyperJobs that have a reservation, by cluster."""
        found: dict[str, list[PlacementRequest]] = {}
        for key in self.missing:
            if key == but:
                continue
            entry, namespace = self._entries[key], key.partition("/")[0]
            for name, cluster in entry.reserved_clusters.items():
                if not self._counts(f"{namespace}/{name}"):
                    found.setdefault(cluster, []).append(entry.holding[name][0].request)
        return found

    def reserve(self, space: Space) -> None:
        """Subtract all reservations; move those on an unusable cluster to another one."""
        for key in sorted(self.missing, key=lambda key: self._entries[key].unit.order):
            entry = self._entries[key]
            unplaced = []
            for part in self._reservations(entry):
                cluster = entry.reserved_clusters.get(part.name)
                if cluster in space.free:
                    space.put(part.request, cluster)
                else:
                    entry.reserved_clusters.pop(part.name, None)
                    unplaced.append(part.request)
            if unplaced:
                _reserve_elsewhere(entry, unplaced, space)

    def eventual(
        self, clusters: Sequence[Cluster], shown: Mapping[str, Resources], *, now: datetime
    ) -> dict[str, Resources]:
        """Return the free resources of each cluster after the end of all HyperJobs."""
        return self.occupancy.eventual(clusters, shown, now=now)

    def _reservations(self, entry: Entry) -> list[QueuedSubJob]:
        """Return the sub-jobs that hold a share and that no free amount excludes yet."""
        namespace = entry.unit.key.partition("/")[0]
        return [part for part in entry.missing if not self._counts(f"{namespace}/{part.name}")]

    def _count(
        self,
        namespace: str,
        before: Mapping[str, tuple[QueuedSubJob, str]],
        after: Mapping[str, tuple[QueuedSubJob, str]],
        now: datetime,
    ) -> None:
        self.changed = True
        self._jobs -= {f"{namespace}/{name}" for name in before}
        self._jobs |= {intern(f"{namespace}/{name}") for name in after}
        for name, (part, cluster) in before.items():
            self._shares.count(part, -1)
            self.occupancy.drop(cluster, part.request.demand)
            if name not in after:
                self.occupancy.fade(cluster, part.request.demand, now=now)
        for part, cluster in after.values():
            self._shares.count(part)
            self.occupancy.hold(cluster, part.request.demand)


def _reserve_elsewhere(entry: Entry, unplaced: Sequence[PlacementRequest], space: Space) -> None:
    """Move reservations to clusters with room; for the rest, keep all room that they could use."""
    limit = entry.unit.max_domains
    standing = [
        (part.request.group, cluster) for part, cluster in entry.holding.values() if cluster
    ]
    found = space.assign(unplaced, standing, limit)
    for request in unplaced:
        if request.name in found:
            entry.reserved_clusters[request.name] = found[request.name]
            space.put(request, found[request.name])
    left = [request for request in unplaced if request.name not in found]
    if left:
        space.keep(space.wants(left, most=len(left), max_domains=limit))


def _mark(keys: dict[str, None], key: str, *, marked: bool) -> None:
    if marked:
        keys[key] = None
    else:
        keys.pop(key, None)
