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
from fractions import Fraction

from hyperjob_controller.memory.sums import PodKind, count_pods, on, without
from hyperjob_core.api.duration import seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import KIND, LABEL_HYPERJOB, LABEL_REPLICATED_JOB
from hyperjob_core.api.wire import at, mapping, string, string_map, timestamp
from hyperjob_core.kube.resources import key_of
from hyperjob_engine.expansion.expand import pod_groups
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Binding, Cluster, ReportedStatus, grace_of
from hyperjob_engine.model.parse import (
    controller_of,
    parse_binding,
    parse_report,
    pinned_clusters,
)
from hyperjob_engine.model.planned import Action, CreateChild, Repin
from hyperjob_engine.placement.capacity import Reservation, is_complete, is_listed, reservation
from hyperjob_engine.placement.ground import Ground, among
from hyperjob_engine.placement.ledger import Ledger
from hyperjob_engine.queueing.claims import Claims, together
from hyperjob_engine.queueing.occupancy import Occupancy
from hyperjob_engine.resources import PODS, Resources, accumulate, scale, subtract, total, whole

Lookup = Callable[[str], Object | None]


@dataclass(slots=True)
class _Known:
    """The state of one vcjob, which a later and poorer event does not remove."""

    uid: str
    generation: object
    demand: Resources
    pods: tuple[PodGroup, ...]
    grace: timedelta
    created: datetime | None
    complete_since: datetime | None = None
    shown_on: str = ""  # the cluster whose nodes have shown all of its pods
    cluster: str = ""  # on which it has room, in the summary or not
    reached: bool = False  # a member has it, or is about to get it
    left: Fraction = Fraction(1)  # the part of its pods that have not ended
    versions: tuple[str, ...] = ()  # of the objects that the last update has seen


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
        self._freed: set[str] = set()  # the clusters with more room since `take_freed`
        self._versions: Counter[str] = Counter()
        self._sizes: Memo[object, tuple[tuple[PodGroup, ...], Resources, timedelta]] = Memo()
        self._bindings: Memo[Object, Binding] = Memo()
        self._known: dict[str, _Known] = {}  # every vcjob that counts
        # The vcjobs of `_known` that hold room. `_replace` alone changes the entries, and with them
        # their keys and sums by cluster; `assumed` adds to the sums inside its context.
        self._entries: dict[str, Reservation] = {}
        self._by_cluster: dict[str, dict[str, None]] = {}
        self._sums: dict[str, dict[str, int]] = {}
        self._settling: dict[str, dict[str, int]] = {}
        self._pods: dict[str, Counter[PodKind]] = {}
        self._ledger = Ledger(lag=lag, changed=self._recount)
        # A heap of the ends of entries. An item counts while its entry is the present one of its
        # key; the number keeps two entries from being compared.
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
        """Update the reservation of a vcjob after a change of one of its objects.

        A vcjob holds room in up to three places, each until the Cluster's status shows it: an entry
        (pods that the status does not count yet), the ledger (what it settles with the status) and
        the occupancy (pods by kind). A vcjob that has ended, was moved or is gone leaves its former
        cluster first, for as long as its pods may still stop.
        """
        raw = self._job(key)
        if raw is None or not self._is_counted(key, raw):
            known = self._known.pop(key, None)
            if known is not None:
                self._leave(key, known, known.grace, now)
                self._occupy(known, "", now)
            self._replace(key, None)
            return
        known = self._remember(key, raw, now)
        known.versions = self._versions_of(key)
        cluster, report = self._whereabouts(key, raw)
        ended = report is not None and report.phase.is_terminal
        if ended or cluster != known.cluster:
            early = report is not None and report.pods.running + report.pods.terminating > 0
            self._leave(key, known, known.grace if early or not ended else timedelta(), now)
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
        by_pods = self._is_shown(key, known, cluster, report) and entry is not None
        if by_pods:
            entry = None
        held = entry if entry is not None and cluster and entry.holds(now) else None
        self._replace(key, held)
        if cluster and not ended:
            known.reached = known.reached or report is not None or self._is_reached(key, raw)
            some = report is not None and report.pods.total > 0
            if report is not None and some:
                ended_pods = report.pods.succeeded + report.pods.failed
                known.left = 1 - Fraction(ended_pods, report.pods.total)
            self._ledger.hold(
                key,
                cluster,
                known.demand,
                settled=held is None,
                pods=some,
                by_pods=by_pods,
                now=now,
            )

    def renew(self, key: str, *, now: datetime) -> bool:
        """Update a reservation whose last update has not seen the present objects; return if so."""
        known = self._known.get(key)
        if known is not None and known.versions == self._versions_of(key):
            return False
        self.update(key, now=now)
        return True

    def _versions_of(self, key: str) -> tuple[str, ...]:
        found = (look(key) for look in (self._job, self._policy, self._binding))
        return tuple(string(at(obj, "metadata", "resourceVersion")) for obj in found)

    def summarised(self, cluster: str, taken: Resources | None, *, now: datetime) -> None:
        """Record a changed summary of a cluster, None for none; drop what it settles."""
        self._summarised[cluster] = now
        self._ledger.summarised(cluster, taken, now=now)
        for key in list(self._by_cluster.get(cluster, ())):
            if is_listed(self._known[key].complete_since, now):
                self._settle(key, now)

    def expire(self, *, now: datetime) -> None:
        """Drop the reservations whose time is over; the readers below leave them in place."""
        while self._due:
            due, _, key, entry = self._due[0]
            current = self._entries.get(key) is entry
            if current and due > now:
                return
            heapq.heappop(self._due)
            if current:
                self._settle(key, now)
        self._ledger.expire(now=now)

    def begin(self, cluster: str, taken: Resources | None) -> None:
        """Record the first summary of a cluster, of unknown age; None: the cluster is gone."""
        self._summarised.pop(cluster, None)
        self._ledger.begin(cluster, taken)

    def claims(self, *, now: datetime) -> Claims:
        """Return what the summaries count of sub-jobs, and may still count of ended ones."""
        return Claims(now, together(self._occupancy.all, self._ledger.all_ended))

    def unclaimed(self, claims: Claims) -> dict[str, Resources]:
        """Return what these claims had of sub-jobs that are no longer there, by cluster."""
        known = ((each.cluster, each.demand, each.created) for each in self._known.values())
        return claims.without(known)

    def take_freed(self) -> list[str]:
        """Return the clusters that have had more room since the last call."""
        freed = sorted(self._freed)
        self._freed.clear()
        return freed

    def reserved(
        self, *, now: datetime, clusters: Collection[str] | None = None
    ) -> dict[str, Resources]:
        """Return the reserved resources per cluster; `clusters` None: on all."""
        return without(on(self._sums, clusters), self._ended(now))

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
        return without(on(self._settling, clusters), self._ended(now))

    def credit(self, cluster: str) -> Resources:
        """Return what the summary of a cluster counts of reservations and of ended sub-jobs."""
        return subtract(self._ledger.counted(cluster), self._ledger.ending(cluster))

    def ending(self, cluster: str) -> Resources:
        """Return what stopped sub-jobs with a long grace period hold of a cluster."""
        return self._ledger.ending(cluster)

    def ended_jobs(self, cluster: str) -> list[str]:
        """Return the ended vcjobs, as namespace/name, whose pods a cluster may still have."""
        return self._ledger.ended_on(cluster)

    def beyond(self, ground: Ground, cluster: str, *, now: datetime) -> tuple[PodGroup, ...]:
        """Return the pods of the reservations of a cluster that its nodes do not show yet."""
        kinds = Counter(self._pods.get(cluster, {}))
        for key in self._by_cluster.get(cluster, ()):
            entry = self._entries[key]
            shown = among(entry.pods, ground.pods_of(key)) if entry.holds(now) else entry.pods
            count_pods(kinds, shown, -1)
        return tuple(PodGroup(dict(kind[0]), n, kind[1], kind[2]) for kind, n in kinds.items())

    def pods(
        self, *, now: datetime, clusters: Collection[str] | None = None
    ) -> dict[str, tuple[PodGroup, ...]]:
        """Return the pods of the reservations per cluster."""
        ended: dict[str, Counter[PodKind]] = {}
        for entry in self._ended(now):
            count_pods(ended.setdefault(entry.cluster, Counter()), entry.pods, 1)
        found = {
            cluster: tuple(
                PodGroup(dict(kind[0]), left, kind[1], kind[2])
                for kind, number in sums.items()
                if (left := number - ended.get(cluster, Counter())[kind])
            )
            for cluster, sums in on(self._pods, clusters).items()
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
            count_pods(self._pods.setdefault(action.cluster, Counter()), action.pods, 1)
            self._occupancy.hold(action.cluster, action.demand)
        try:
            yield
        finally:
            self._assumed.subtract(keys)
            self._assumed += Counter()  # remove keys with a count of 0
            for action in assumed:
                self._versions[action.cluster] += 1
                accumulate(self._sums.setdefault(action.cluster, {}), action.demand, -1)
                count_pods(self._pods[action.cluster], action.pods, -1)
                self._occupancy.drop(action.cluster, action.demand)

    def counts(self, key: str) -> bool:
        """Return whether the reservations or its cluster's status already count a vcjob."""
        return key in self._known or key in self._assumed

    def let_go(self, actions: Iterable[Action]) -> None:
        """Mark the clusters of failed creations as clusters with more room."""
        self._freed |= {each.cluster for each in actions if isinstance(each, CreateChild | Repin)}

    def jobs_on(self, cluster: str) -> list[str]:
        """Return the vcjobs that have room on a cluster."""
        return [key for key, known in self._known.items() if known.cluster == cluster]

    def reserves(self, key: str) -> bool:
        """Return whether a vcjob has a reservation."""
        return key in self._entries

    def _is_shown(
        self, key: str, known: _Known, cluster: str, report: ReportedStatus | None
    ) -> bool:
        """Return whether the known nodes of a cluster count all pods of a vcjob.

        They did before, too, if some of the pods have ended since; new pods of the vcjob count
        again when all of them are there.
        """
        if not cluster:
            return False
        pods = self._pods_of(cluster, key)
        if pods is None:
            known.shown_on = ""
        elif whole(pods) >= known.demand.get(PODS, 0):
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
            pods, demand, grace = self._size_of(mapping(raw.get("spec")))
            created = timestamp(metadata.get("creationTimestamp"))
            made = _Known(uid, generation, demand, pods, grace, created)
            if known is not None and known.uid == uid:
                made.complete_since, made.reached = known.complete_since, known.reached
            elif known is not None:
                self._leave(key, known, known.grace, now)
            self._occupy(known, "", now)
            known = self._known[key] = made
        return known

    def _size_of(self, spec: Object) -> tuple[tuple[PodGroup, ...], Resources, timedelta]:
        """Return the pods of a vcjob, their sum and grace period; the caches share equal tasks."""
        tasks = spec.get("tasks")

        def size(_tasks: object) -> tuple[tuple[PodGroup, ...], Resources, timedelta]:
            pods = pod_groups(spec)
            demand = total(scale(group.request, group.number) for group in pods)
            return pods, demand, seconds(grace_of(spec))

        return self._sizes.of(id(tasks), tasks, size)

    def _leave(self, key: str, known: _Known, grace: timedelta, now: datetime) -> None:
        """Record that a sub-job has left its cluster, where its pods may run on."""
        if known.cluster:
            self._freed.add(known.cluster)
        if known.reached:
            self._ledger.end(key, now=now, grace=grace, left=known.left)
        else:
            self._ledger.drop(key)

    def _settle(self, key: str, now: datetime) -> None:
        """Drop the reservation of a sub-job whose pods the summary of its cluster has."""
        known = self._known[key]
        self._replace(key, None)
        self._ledger.hold(key, known.cluster, known.demand, settled=True, pods=True, now=now)

    def _recount(self, cluster: str) -> None:
        self._versions[cluster] += 1

    def _is_reached(self, key: str, raw: Object) -> bool:
        """Return whether a member has a vcjob, or is about to get it."""
        binding = self._parsed(key)
        mine = binding is not None and binding.job_uid == at(raw, "metadata", "uid")
        return (
            mine and binding is not None and (binding.applied or not binding.dispatching_suspended)
        )

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
        found = self._binding(key)
        return None if found is None else self.parsed(found)

    def parsed(self, binding: Object) -> Binding:
        """Return a parsed ResourceBinding, once for several events and the pass after them."""
        return self._bindings.of(key_of(binding), binding, parse_binding)

    def _replace(self, key: str, entry: Reservation | None) -> None:
        old = self._entries.get(key)
        if old == entry:
            return
        if old is not None:
            del self._entries[key]
            del self._by_cluster[old.cluster][key]
            self._count(old, -1)
        if entry is not None:
            self._entries[key] = entry
            self._by_cluster.setdefault(entry.cluster, {})[key] = None
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

    def _count(self, entry: Reservation, sign: int) -> None:
        self._versions[entry.cluster] += 1
        accumulate(self._sums.setdefault(entry.cluster, {}), entry.demand, sign)
        count_pods(self._pods.setdefault(entry.cluster, Counter()), entry.pods, sign)
        if entry.shown_at is not None:
            accumulate(self._settling.setdefault(entry.cluster, {}), entry.demand, sign)
