"""The free resources of the member clusters: those of their status minus the reservations.

Handlers of the Cluster informer keep it up to date.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from hyperjob_controller.memory.candidates import Candidates
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.capacity import (
    ClusterSummary,
    free_of,
    less,
    summarise,
)
from hyperjob_engine.resources import Resources


class Capacity:
    """All clusters of one control plane."""

    def __init__(
        self,
        clusters: Informer,
        reservations: Reservations,
        *,
        now: Callable[[], datetime],
        views: Callable[..., Mapping[str, MemberView]] = lambda *_: {},
    ) -> None:
        """Use `views`, which returns the clusters whose nodes are known at a time.

        Its second argument limits it to some clusters.
        """
        self._views = views
        self._reservations = reservations
        self._now = now
        self._summaries: Mapping[str, ClusterSummary] = {}
        self._candidates = Candidates(reservations)
        self._lessened: dict[str, tuple[Cluster, list[PlacementRequest], Cluster]] = {}
        clusters.add_handler(self._changed)

    def clusters(
        self, *, now: datetime, promised: Mapping[str, Iterable[PlacementRequest]] | None = None
    ) -> tuple[Cluster, ...]:
        """Return the clusters with their free resources, minus the `promised` requests on each."""
        found = self._candidates.of(self._summaries, self._views(now), now=now)
        return self._less(found, promised) if promised else found

    def _less(
        self, clusters: Sequence[Cluster], promised: Mapping[str, Iterable[PlacementRequest]]
    ) -> tuple[Cluster, ...]:
        """Subtract the requests; of most clusters the last call has done the same."""
        found, known = [], self._lessened
        self._lessened = {}
        for cluster in clusters:
            requests = list(promised.get(cluster.name, ()))
            if not requests:
                found.append(cluster)
                continue
            before = known.get(cluster.name)
            if before is None or before[0] is not cluster or before[1] != requests:
                before = cluster, requests, less(cluster, requests)
            self._lessened[cluster.name] = before
            found.append(before[2])
        return tuple(found)

    def room(self, cluster: str) -> Resources | None:
        """Return the free resources of a cluster after reservations; None if it is not usable."""
        summary = self._summaries.get(cluster)
        if summary is None or not summary.usable:
            return None
        reserved, credit = self._reservations.held_on(cluster), self._reservations.credit(cluster)
        view = self._views(self._now(), (cluster,)).get(cluster)
        return free_of(summary, reserved, view=view, credit=credit)

    def capacity(self) -> tuple[Sequence[Cluster], Mapping[str, Resources]]:
        """Return the clusters with the free resources after reservations, and without these."""
        now = self._now()
        views = self._views(now)
        shown = {
            each.name: free_of(each, {}, view=views.get(each.name))
            for each in self._summaries.values()
        }
        return self.clusters(now=now), shown

    def eventual(self) -> tuple[Sequence[Cluster], Mapping[str, Resources]]:
        """Return the clusters, and the free resources of each after the end of all HyperJobs."""
        now = self._now()
        found = self.clusters(now=now)
        usable = [cluster for cluster in found if cluster.usable]
        return found, self._reservations.eventual(usable, now=now)

    def changes_in(self, *, now: datetime) -> timedelta | None:
        """Return the time until a reservation ends without a change of an object."""
        known = (
            self._reservations.next_change(now=now),
            self._reservations.eventual_changes_in(now=now),
        )
        return min((wait for wait in known if wait is not None), default=None)

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a Cluster: its summary is parsed once for each change."""
        found = dict(self._summaries)  # a new mapping at each change, as `Candidates` demands
        found.pop(string(at(new or old, "metadata", "name")), None)
        self._summaries = found  # also after an exception: nothing is placed by an old summary
        if kind is not EventType.DELETED and new is not None:
            summary = summarise(new)
            self._summaries = {**found, summary.name: summary}
