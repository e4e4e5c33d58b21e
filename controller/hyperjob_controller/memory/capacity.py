"""The clusters with their free resources: those of their nodes or status minus the reservations.

Handlers of the Cluster informer keep it up to date. A cluster is computed again when its status,
its reservations or its nodes have changed, and is the same value until then.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from hyperjob_controller.memory.reservations import Reservations
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.capacity import less, promised_on, seen_by_nodes, summarise
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.resources import Resources, scale, total


class Capacity:
    """All clusters of one control plane.

    Invariant: what it returns at a time has each reservation subtracted that holds at that time,
    and of a cluster whose nodes are known only the pods of it that these do not show.
    """

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
        self._shown: dict[str, Cluster] = {}  # by their status alone
        self._known: dict[str, tuple[tuple[Cluster, int, MemberView | None], Cluster]] = {}
        self._lessened: dict[str, tuple[Cluster, list[PlacementRequest], Cluster]] = {}
        clusters.add_handler(self._changed)

    def clusters(
        self, *, now: datetime, promised: Mapping[str, Iterable[PlacementRequest]] | None = None
    ) -> tuple[Cluster, ...]:
        """Return the clusters with their free resources, minus the `promised` requests on each."""
        self._reservations.expire(now=now)
        views = self._views(now)
        found = tuple(self._cluster(name, views.get(name)) for name in sorted(self._shown))
        return self._less(found, promised) if promised else found

    def _cluster(self, name: str, view: MemberView | None) -> Cluster:
        """Return a cluster as the reservations leave it, the same one until something changes."""
        shown = self._shown[name]
        basis = shown, self._reservations.versions.get(name, 0), view
        known = self._known.get(name)
        if known is None or not _same(known[0], basis):
            known = self._known[name] = basis, self._computed(shown, view)
        return known[1]

    def _computed(self, shown: Cluster, view: MemberView | None) -> Cluster:
        name, known = shown.name, self._reservations
        if view is None:
            return promised_on(
                shown,
                known.held_on(name),
                known.pods(name),
                settling=known.settling(name),
                ending={"": known.ending(name)},
            )
        ground = ground_of(name, view)
        pods = known.pods(name, ground)
        demand = total(scale(each.request, each.number) for each in pods)
        ending = ground.leaving(known.ended_jobs(name))
        return promised_on(seen_by_nodes(shown, view), demand, pods, ending=ending)

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
        shown = self._shown.get(cluster)
        if shown is None or not shown.usable:
            return None
        return self._cluster(cluster, self._views(self._now(), (cluster,)).get(cluster)).free

    def changes_in(self, *, now: datetime) -> timedelta | None:
        """Return the time until a reservation ends without a change of an object."""
        return self._reservations.next_change(now=now)

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a Cluster: its status is parsed once for each change."""
        name = string(at(new or old, "metadata", "name"))
        self._shown.pop(name, None)  # also after an exception: nothing is placed by an old status
        self._known.pop(name, None)
        if kind is not EventType.DELETED and new is not None:
            self._shown[name] = summarise(new)


def _same(
    one: tuple[Cluster, int, MemberView | None], other: tuple[Cluster, int, MemberView | None]
) -> bool:
    """Return whether a cluster was computed of the same values."""
    return one[0] is other[0] and one[1] == other[1] and one[2] is other[2]
