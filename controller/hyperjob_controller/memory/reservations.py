"""The reservations of all sub-jobs, summed per cluster and updated with each change of an object.

After a restart they are rebuilt from the informer caches. A sub-job of an existing HyperJob counts,
and so does a vcjob in a member whose HyperJob was deleted. A vcjob that merely has the labels of a
HyperJob does not count.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, TypeVar

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import KIND, LABEL_HYPERJOB, LABEL_REPLICATED_JOB
from hyperjob_core.api.wire import at, mapping, string, string_map
from hyperjob_engine.expansion.expand import pod_groups
from hyperjob_engine.model.members import NodeWants
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.nodes import Domain, Frozen, PodGroup
from hyperjob_engine.model.observed import Binding, Cluster, ReportedStatus
from hyperjob_engine.model.parse import (
    controller_of,
    parse_binding,
    parse_report,
    pinned_clusters,
)
from hyperjob_engine.model.planned import Action, CreateChild, Repin
from hyperjob_engine.placement.capacity import Reservation, is_complete, is_listed, reservation
from hyperjob_engine.queueing.occupancy import Occupancy
from hyperjob_engine.resources import PODS, Resources, accumulate, scale, total, whole

Lookup = Callable[[str], Object | None]
PodKind: TypeAlias = tuple[Frozen, NodeWants, tuple[Domain, ...]]
T = TypeVar("T")


@dataclass(slots=True)
class _Known:
    """The state of one vcjob, which a later and poorer event does not remove."""

    uid: str
    generation: object
    demand: Resources
    pods: tuple[PodGroup, ...]
    complete_since: datetime | None = None
    shown_on: str = ""  # the cluster whose nodes have shown all of its pods
    cluster: str = ""  # on which it has room, in the summary or not


class Reservations:
    """The demands of sub-jobs on each cluster that its resourceSummary does not count yet."""

    def __init__(
        self,
        *,
        hyperjob: Lookup,
        job: Lookup,
        policy: Lookup,
        binding: Lookup,
        lag: timedelta,
        pods_of: Callable[[str, str], int | None] = lambda _cluster, _job: None,
    ) -> None:
        """`hyperjob` takes the key of a HyperJob, the other look-ups that of a vcjob.

        `pods_of` returns the pods of a vcjob on the nodes of a cluster, or waiting for these, as
        far as they count there already; None if the cluster's nodes are not known.
        """
        self._hyperjob = hyperjob
        self._job = job
        self._policy = policy
        self._binding = binding
        self._lag = lag
        self._pods_of = pods_of
        self._freed: set[str] = set()
        self._versions: Counter[str] = Counter()
        self._sizes: Memo[object, tuple[tuple[PodGroup, ...], Resources]] = Memo()
        self._bindings: Memo[Object, Binding] = Memo()
        self._known: dict[str, _Known] = {}
        self._entries: dict[str, Reservation] = {}
        self._sums: dict[str, dict[str, int]] = {}
        self._settling: dict[str, dict[str, int]] = {}
        self._pods: dict[str, Counter[PodKind]] = {}
        self._due: list[tuple[datetime, int, str, Reservation]] = []
        self._order = itertools.count()
        self._assumed: Counter[str] = Counter()
        self._occupancy = Occupancy(lag=lag)
        self._summarised: dict[str, datetime] = {}

    def __str__(self) -> str:
        """Return the sub-jobs that hold room on a cluster which its status does not show yet."""
        found = sorted(f"{key} on {each.cluster}" for key, each in self._entries.items())
        return ", ".join(found) or "none"

    def update(self, key: str, *, now: datetime) -> None:
        """Update the reservation of a vcjob after a change of one of its objects."""
        raw = self._job(key)
        if raw is None or not self._is_counted(key, raw):
            self._occupy(self._known.pop(key, None), "", now)
            self._replace(key, None)
            return
        known = self._remember(key, raw, now)
        cluster, report = self._whereabouts(key, raw)
        ended = report is not None and report.phase.is_terminal
        self._occupy(known, "" if ended else cluster, now)
        if known.complete_since is None and is_complete(known.demand, report):
            known.complete_since = now
        elif report is not None and not is_complete(known.demand, report):
            known.complete_since = None
        entry = reservation(
            cluster=cluster,
            demand=known.demand,
            report=report,
            complete_since=known.complete_since,
            lag=self._lag,
            pods=known.pods,
            summarised=self._summarised.get(cluster),
        )
        if self._is_shown(key, known, cluster, report):
            entry = None
        held = entry if entry is not None and cluster and entry.holds(now) else None
        self._replace(key, held)

    def summarised(self, cluster: str, *, now: datetime) -> None:
        """Record a changed summary of a cluster; drop the reservations that it counts."""
        self._summarised[cluster] = now
        for _, _, key, entry in self._due.copy():
            current = entry.cluster == cluster and self._entries.get(key) is entry
            if current and is_listed(self._known[key].complete_since, now):
                self._replace(key, None)

    def expire(self, *, now: datetime) -> None:
        """Drop the reservations whose time is over; the readers below leave them in place."""
        while self._due:
            due, _, key, entry = self._due[0]
            current = self._entries.get(key) is entry
            if current and due > now:
                return
            heapq.heappop(self._due)
            if current:
                self._replace(key, None)

    def take_freed(self) -> list[str]:
        """Return the clusters that have had more room since the last call."""
        freed = sorted(self._freed)
        self._freed.clear()
        return freed

    def reserved(
        self, *, now: datetime, clusters: Collection[str] | None = None
    ) -> dict[str, Resources]:
        """Return the reserved resources per cluster; `clusters` None: on all."""
        return self._without(self._on(self._sums, clusters), self._ended(now))

    @property
    def versions(self) -> Mapping[str, int]:
        """Return a number per cluster that grows with each change of its reservations."""
        return self._versions

    def ended_on(self, *, now: datetime) -> set[str]:
        """Return the clusters with reservations whose time is over and that are not dropped yet."""
        return {entry.cluster for entry in self._ended(now)}

    def held_on(self, cluster: str) -> Resources:
        """Return the reserved resources of a cluster, ended reservations included."""
        return self._sums.get(cluster, {})

    def settling(
        self, *, now: datetime, clusters: Collection[str] | None = None
    ) -> dict[str, Resources]:
        """Return the part of sub-jobs with all pods, which the summaries may count already."""
        return self._without(self._on(self._settling, clusters), self._ended(now))

    def pods(
        self, *, now: datetime, clusters: Collection[str] | None = None
    ) -> dict[str, tuple[PodGroup, ...]]:
        """Return the pods of the reservations per cluster."""
        ended: dict[str, Counter[PodKind]] = {}
        for entry in self._ended(now):
            _count_pods(ended.setdefault(entry.cluster, Counter()), entry.pods, 1)
        found = {
            cluster: tuple(
                PodGroup(dict(kind[0]), left, kind[1], kind[2])
                for kind, number in sums.items()
                if (left := number - ended.get(cluster, Counter())[kind])
            )
            for cluster, sums in self._on(self._pods, clusters).items()
        }
        return {cluster: groups for cluster, groups in found.items() if groups}

    def next_change(self, *, now: datetime) -> timedelta | None:
        """Return when the next reservation ends by time alone."""
        if self._due and self._due[0][0] > now and self._is_current(self._due[0]):
            return self._due[0][0] - now
        coming = (each[0] for each in self._due if each[0] > now and self._is_current(each))
        return min((due - now for due in coming), default=None)

    def eventual(self, clusters: Iterable[Cluster], *, now: datetime) -> dict[str, Resources]:
        """Return the free resources per cluster after the end of all HyperJobs.

        `clusters` are as observed, with all reservations subtracted.
        """
        return self._occupancy.eventual(clusters, {}, now=now)

    def eventual_changes_in(self, *, now: datetime) -> timedelta | None:
        """Return the time until `eventual` changes without a change of an object."""
        due = self._occupancy.next_change(after=now)
        return None if due is None else due - now

    @contextmanager
    def assumed(self, actions: Iterable[Action], *, namespace: str = "") -> Iterator[None]:
        """Reserve the room of sub-jobs that are being created, inside the context."""
        assumed = [action for action in actions if isinstance(action, CreateChild | Repin)]
        keys = [f"{namespace}/{action.name}" for action in assumed]
        self._assumed.update(keys)
        for action in assumed:
            self._versions[action.cluster] += 1
            accumulate(self._sums.setdefault(action.cluster, {}), action.demand, 1)
            _count_pods(self._pods.setdefault(action.cluster, Counter()), action.pods, 1)
            self._occupancy.hold(action.cluster, action.demand)
        try:
            yield
        finally:
            self._assumed.subtract(keys)
            self._assumed += Counter()  # remove keys with a count of 0
            for action in assumed:
                self._versions[action.cluster] += 1
                accumulate(self._sums.setdefault(action.cluster, {}), action.demand, -1)
                _count_pods(self._pods[action.cluster], action.pods, -1)
                self._occupancy.drop(action.cluster, action.demand)

    def counts(self, key: str) -> bool:
        """Return whether the reservations or its cluster's status already count a vcjob."""
        return key in self._known or key in self._assumed

    def let_go(self, actions: Iterable[Action]) -> None:
        """Mark the clusters of failed creations as clusters with more room."""
        self._freed |= {each.cluster for each in actions if isinstance(each, CreateChild | Repin)}

    def reserves(self, key: str) -> bool:
        """Return whether a vcjob has a reservation."""
        return key in self._entries

    def _is_shown(
        self, key: str, known: _Known, cluster: str, report: ReportedStatus | None
    ) -> bool:
        """Return whether the nodes of a cluster count all pods of a vcjob.

        They did before, too, if some of the pods have ended since; new pods of the vcjob count
        again when all of them are there.
        """
        if not cluster:
            return False
        pods = self._pods_of(cluster, key)
        if pods is not None and whole(pods) >= known.demand.get(PODS, 0):
            known.shown_on = cluster
        elif report is not None and not is_complete(known.demand, report):
            known.shown_on = ""
        return known.shown_on == cluster

    def _is_counted(self, key: str, raw: Object) -> bool:
        """Return whether a vcjob counts: an existing HyperJob controls it, or a member has it."""
        metadata = mapping(raw.get("metadata"))
        if metadata.get("deletionTimestamp") is not None:
            return False
        reference = controller_of(metadata)
        name = string(reference.get("name"))
        owner = self._hyperjob(f"{string(metadata.get('namespace'))}/{name}")
        labels = string_map(metadata.get("labels"))
        if (
            reference.get("kind") == KIND
            and at(owner, "metadata", "uid") == reference.get("uid")
            and at(owner, "metadata", "deletionTimestamp") is None
            and labels.get(LABEL_HYPERJOB) == name
            and LABEL_REPLICATED_JOB in labels
        ):
            return True
        binding = self._parsed(key)
        return (
            binding is not None
            and binding.job_uid == metadata.get("uid")
            and (binding.applied or binding.report is not None)
        )

    def _remember(self, key: str, raw: Object, now: datetime) -> _Known:
        metadata = mapping(raw.get("metadata"))
        uid, generation = string(metadata.get("uid")), metadata.get("generation")
        known = self._known.get(key)
        if known is None or known.uid != uid or known.generation != generation:
            pods, demand = self._size_of(mapping(raw.get("spec")))
            since = known.complete_since if known is not None and known.uid == uid else None
            self._occupy(known, "", now)
            known = _Known(uid, generation, demand, pods, since)
            self._known[key] = known
        return known

    def _size_of(self, spec: Object) -> tuple[tuple[PodGroup, ...], Resources]:
        """Return the pods of a vcjob and their sum; the caches share equal tasks."""
        tasks = spec.get("tasks")

        def size(_tasks: object) -> tuple[tuple[PodGroup, ...], Resources]:
            pods = pod_groups(spec)
            return pods, total(scale(group.request, group.number) for group in pods)

        return self._sizes.of(id(tasks), tasks, size)

    def _occupy(self, known: _Known | None, cluster: str, now: datetime) -> None:
        if known is None or known.cluster == cluster:
            return
        self._occupancy.drop(known.cluster, known.demand)
        self._occupancy.fade(known.cluster, known.demand, now=now)
        self._occupancy.hold(cluster, known.demand)
        known.cluster = cluster

    def _whereabouts(self, key: str, raw: Object) -> tuple[str, ReportedStatus | None]:
        """Return the cluster of a sub-job, and its report.

        Before a report, the pin of the policy precedes the cluster of the ResourceBinding: a move
        may not have reached Karmada yet.
        """
        report, placed = parse_report(raw.get("status")), ""
        binding = self._parsed(key)
        if binding is not None and binding.job_uid == at(raw, "metadata", "uid"):
            report, placed = binding.report or report, binding.cluster
        policy = self._policy(key)
        pins = pinned_clusters(at(policy, "spec", "placement")) if policy is not None else ()
        pin = pins[0] if len(pins) == 1 else ""
        return (placed or pin if report is not None else pin or placed), report

    def _parsed(self, key: str) -> Binding | None:
        """Return the parsed ResourceBinding of a vcjob, once for several events in a row."""
        found = self._binding(key)
        return None if found is None else self._bindings.of(key, found, parse_binding)

    def _replace(self, key: str, entry: Reservation | None) -> None:
        old = self._entries.get(key)
        if old == entry:
            return
        if old is not None:
            del self._entries[key]
            self._count(old, -1)
        if entry is not None:
            self._entries[key] = entry
            self._count(entry, 1)
            if entry.shown_at is not None:
                heapq.heappush(self._due, (entry.shown_at, next(self._order), key, entry))
        if old is not None and (entry is None or entry.cluster != old.cluster):
            self._freed.add(old.cluster)

    def _ended(self, now: datetime) -> list[Reservation]:
        """Return the reservations whose time is over and that are not dropped yet."""
        if not self._due or self._due[0][0] > now:
            return []
        return [each[3] for each in self._due if each[0] <= now and self._is_current(each)]

    def _is_current(self, due: tuple[datetime, int, str, Reservation]) -> bool:
        return self._entries.get(due[2]) is due[3]

    @staticmethod
    def _on(sums: Mapping[str, T], clusters: Collection[str] | None) -> Mapping[str, T]:
        if clusters is None:
            return sums
        return {name: sums[name] for name in clusters if name in sums}

    @staticmethod
    def _without(
        sums: Mapping[str, Resources], ended: Iterable[Reservation]
    ) -> dict[str, Resources]:
        found = {cluster: amounts for cluster, amounts in sums.items() if amounts}
        for entry in ended:
            if entry.cluster not in found:
                continue
            left = dict(found[entry.cluster])
            accumulate(left, entry.demand, -1)
            found[entry.cluster] = left
        return {cluster: amounts for cluster, amounts in found.items() if amounts}

    def _count(self, entry: Reservation, sign: int) -> None:
        self._versions[entry.cluster] += 1
        accumulate(self._sums.setdefault(entry.cluster, {}), entry.demand, sign)
        _count_pods(self._pods.setdefault(entry.cluster, Counter()), entry.pods, sign)
        if entry.shown_at is not None:
            accumulate(self._settling.setdefault(entry.cluster, {}), entry.demand, sign)


def _count_pods(sums: Counter[PodKind], pods: Iterable[PodGroup], sign: int) -> None:
    for group in pods:
        kind = group.frozen, group.wants, group.domains
        sums[kind] += sign * group.number
        if not sums[kind]:
            del sums[kind]
