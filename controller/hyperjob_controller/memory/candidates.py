"""A memo of the free resources of each cluster, valid until its status or reservations change.

With hundreds of clusters a pass computes only the changed ones. The memo can be dropped at any
time.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from hyperjob_controller.memory.reservations import Reservations
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.capacity import ClusterSummary, candidates
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.resources import Resources, positive, scale, subtract, total

_NO_VIEWS: Final[Mapping[str, MemberView]] = {}


class Candidates:
    """The clusters with their free resources after reservations."""

    def __init__(self, reservations: Reservations) -> None:
        self._reservations = reservations
        self._summaries: Mapping[str, ClusterSummary] = {}
        self._views: Mapping[str, MemberView] = {}
        self._known: dict[str, tuple[ClusterSummary, int, Cluster]] = {}
        self._versions: Mapping[str, int] = {}
        self._found: tuple[Cluster, ...] = ()

    def of(
        self,
        summaries: Mapping[str, ClusterSummary],
        views: Mapping[str, MemberView] = _NO_VIEWS,
        *,
        now: datetime,
    ) -> tuple[Cluster, ...]:
        """Return the clusters by name; `summaries` must be a new mapping after each change.

        A known cluster is valid for one summary, one version of its reservations and one view.
        Where pods have ended lately it changes with the time alone: its version -1 equals no
        version, and the next call computes it again.
        """
        versions, ended = self._reservations.versions, self._reservations.ended_on(now=now)
        seen = {name for name in summaries if views.get(name) is not self._views.get(name)}
        if not ended and not seen and summaries is self._summaries and versions == self._versions:
            return self._found
        stale = (ended | seen) | {
            name
            for name, summary in summaries.items()
            if self._is_stale(name, summary, versions.get(name, 0))
        }
        stale &= summaries.keys()
        renewed = self._renewed({name: summaries[name] for name in stale}, views, now=now)
        known = {name: each for name, each in self._known.items() if name in summaries}
        for each in renewed:
            version = versions.get(each.name, 0) if each.name not in ended else -1
            known[each.name] = summaries[each.name], version, each
        self._known, self._summaries, self._versions = known, summaries, dict(versions)
        self._views = views
        self._found = tuple(known[name][2] for name in sorted(known))
        return self._found

    def _renewed(
        self,
        summaries: Mapping[str, ClusterSummary],
        views: Mapping[str, MemberView],
        *,
        now: datetime,
    ) -> tuple[Cluster, ...]:
        """Return these clusters with their free resources.

        A view shows the pods themselves: of the reservations, only pods beyond those on its nodes
        count. Without a view all reservations count, and `credit` returns what the status of the
        Cluster still counts although its pods have ended.
        """
        names, known = summaries.keys(), self._reservations
        reserved = known.reserved(now=now, clusters=names)
        settling = known.settling(now=now, clusters=names)
        pods = known.pods(now=now, clusters=names)
        credit: dict[str, Resources] = {}
        ending: dict[str, Mapping[str, Resources]] = {}
        for name in names:
            view = views.get(name)
            if view is None:
                credit[name], ending[name] = known.credit(name), {"": known.ending(name)}
                settling[name] = positive(subtract(settling.get(name, {}), known.credit(name)))
            else:
                ground = ground_of(name, view)
                pods[name] = known.beyond(ground, name, now=now)
                reserved[name] = total(scale(each.request, each.number) for each in pods[name])
                settling.pop(name, None)
                ending[name] = ground.leaving(known.ended_jobs(name))
        return candidates(summaries.values(), reserved, settling, pods, views, credit, ending)

    def _is_stale(self, name: str, summary: ClusterSummary, version: int) -> bool:
        known = self._known.get(name)
        return known is None or known[0] is not summary or known[1] != version
