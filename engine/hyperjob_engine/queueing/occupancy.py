"""The demands of HyperJobs on each cluster, and the free resources after the end of all of them.

A sub-job that has just ended counts until the Cluster's status must show its end: otherwise its
resources would count as those of another workload, which never ends.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from hyperjob_core.api.duration import later
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.resources import Resources, subtract, total


class _Ended(NamedTuple):
    """An ended sub-job, whose pods the Cluster's resourceSummary may count until `due`."""

    due: datetime
    cluster: str
    demand: Resources


class Occupancy:
    """Demands by cluster; ended sub-jobs are in the order in which they stop counting."""

    def __init__(self, *, lag: timedelta) -> None:
        """`lag` is the longest time until a Cluster's status no longer counts deleted pods."""
        self._lag = lag
        self._held: dict[str, dict[str, int]] = {}
        self._fading: deque[_Ended] = deque()

    def __repr__(self) -> str:
        return repr({"held": self._held, "fading": list(self._fading)})

    def hold(self, cluster: str, demand: Resources) -> None:
        """Add the demand of a sub-job on a cluster; an empty cluster is ignored."""
        if cluster:
            self._held[cluster] = total((self._held.get(cluster, {}), demand))

    def held(self, cluster: str) -> Resources:
        """Return the demand of all sub-jobs on a cluster."""
        return self._held.get(cluster, {})

    @property
    def all(self) -> Mapping[str, Resources]:
        """The demand of all sub-jobs, by cluster."""
        return self._held

    def drop(self, cluster: str, demand: Resources) -> None:
        """Remove the demand of a sub-job that left a cluster."""
        if cluster:
            self._held[cluster] = subtract(self._held.get(cluster, {}), demand)

    def fade(
        self,
        cluster: str,
        demand: Resources,
        *,
        now: datetime,
        grace: timedelta = timedelta(),
    ) -> None:
        """Record an ended sub-job, whose pods the Cluster's resourceSummary may still count.

        `grace` is the time for which its pods may run on.
        """
        self._forget(now)
        if cluster:
            ended = _Ended(later(now, self._lag + grace), cluster, demand)
            insort(self._fading, ended, key=lambda each: each.due)

    def next_change(self, *, after: datetime | None = None) -> datetime | None:
        """Return when the next ended sub-job stops counting; with `after`, the next later one."""
        return next((e.due for e in self._fading if after is None or e.due > after), None)

    def eventual(
        self, clusters: Iterable[Cluster], shown: Mapping[str, Resources], *, now: datetime
    ) -> dict[str, Resources]:
        """Return the resources per cluster that other workloads leave to HyperJobs.

        They are what is free, and what HyperJobs hold or have just released: the status of the
        Cluster may still count the latter as used. The sum may count pods twice for a moment, thus
        it is at most all that the cluster has.
        """
        self._forget(now)
        ours: dict[str, list[Resources]] = {name: [held] for name, held in self._held.items()}
        for ended in self._fading:
            ours.setdefault(ended.cluster, []).append(ended.demand)
        found: dict[str, Resources] = {}
        for cluster in clusters:
            most, free = cluster.allocatable, shown.get(cluster.name, cluster.free)
            held = total(ours.get(cluster.name, ()))
            found[cluster.name] = {
                each: min(amount, free.get(each, 0) + held.get(each, 0))
                for each, amount in most.items()
            }
        return found

    def _forget(self, now: datetime) -> None:
        while self._fading and self._fading[0].due <= now:
            self._fading.popleft()
