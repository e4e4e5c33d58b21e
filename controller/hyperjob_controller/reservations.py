"""The clusters less what is promised on each but not visible there, and what has ended but is.

A cluster is computed again when its status, its reservations or its nodes have changed, and is the
same value until then. Invariants, after each call:

- A sub-job has at most one reservation, from its creation, or the attempt of it, until its cluster
  shows its pods. The nodes of a member show them when all are there. A resourceSummary shows them
  at its first change `LISTED_WITHIN` after all were there, or `lag` after that, whatever it says.
- A sub-job that a member had and that has ended is in `ending` until a summary is without its pods,
  by the same rule.
- What is left of a cluster is summed up from its reservations. `_put` and `_drop` change these.
- `clusters` returns what is left beside each reservation that holds at its time; where the nodes
  are known, beside the pods of reservations that these do not show.

After a restart they are computed from the informer caches. What has ended before is not known: all
that a summary shows as used is in `settling` until the next one, or for `lag`. A vcjob counts if
its HyperJob exists, or if it is in a member; the labels of a HyperJob alone do not make it count.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from hyperjob_core.api.duration import later, seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import KIND, LABEL_HYPERJOB, LABEL_REPLICATED_JOB
from hyperjob_core.api.wire import at, mapping, string, string_map
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.resources import key_of
from hyperjob_engine.expansion.expand import items_of
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import Binding, Cluster, ReportedStatus, grace_of
from hyperjob_engine.model.parse import (
    controller_of,
    parse_binding,
    parse_report,
    pinned_clusters,
)
from hyperjob_engine.model.planned import Action, CreateChild, Repin
from hyperjob_engine.model.request import Items, PlacementRequest, counted, request_of_all
from hyperjob_engine.placement.capacity import (
    Reservation,
    is_complete,
    is_listed,
    less,
    promised_on,
    reservation,
    seen_by_nodes,
    summarise,
)
from hyperjob_engine.placement.ground import ground_of, unshown
from hyperjob_engine.resources import PODS, Resources, subtract, total, whole

Lookup = Callable[[str], Object | None]
_UNKNOWN: Final = "of the leader before"


@dataclass(slots=True)
class _Known:
    """The state of one vcjob, which a later and poorer event does not remove."""

    uid: str
    generation: object
    demand: Resources
    pods: Items
    grace: timedelta
    complete_since: datetime | None = None
    shown_on: str = ""  # the cluster whose nodes have shown all of its pods
    cluster: str = ""  # on which it has room, in the summary or not
    reached: bool = False  # this cluster has it, or is about to get it


_Table: TypeAlias = dict[str, dict[str, Reservation]]
"""Reservations by cluster and vcjob."""


class Reservations:
    """The sub-jobs that their clusters do not count yet, and the ended ones that they still do."""

    def __init__(
        self,
        *,
        hyperjob: Lookup,
        job: Lookup,
        policy: Lookup,
        binding: Lookup,
        lag: timedelta,
        pods_of: Callable[[str, str], int | None] = lambda _cluster, _job: None,
        views: Callable[[datetime, Collection[str]], Mapping[str, MemberView]] = lambda *_: {},
    ) -> None:
        """`hyperjob` takes the key of a HyperJob, the other look-ups that of a vcjob.

        `pods_of` returns the pods of a vcjob on the nodes of a cluster, or waiting for these, as
        far as they count there already; None if the cluster's nodes are not known. `views` returns
        the clusters whose nodes are known at a time, of these clusters, or of all without any.
        """
        self._hyperjob = hyperjob
        self._job = job
        self._policy = policy
        self._binding = binding
        self._lag = lag
        self._pods_of = pods_of
        self._views = views
        self._freed: set[str] = set()  # the clusters with more room since `take_freed`
        self._shown: dict[str, Cluster] = {}  # by their status alone
        # What is left of a cluster, by the view of its nodes; `_recompute` drops it. A pass leaves
        # the room of others out of it as well, which is mostly that of the pass before.
        self._left: dict[str, tuple[MemberView | None, Cluster]] = {}
        self._lessened: dict[str, tuple[Cluster, list[PlacementRequest], Cluster]] = {}
        self._sizes: Memo[object, tuple[Items, Resources, timedelta]] = Memo()
        self._bindings: Memo[Object, Binding] = Memo()
        self._known: dict[str, _Known] = {}  # every vcjob that counts
        self._reserved: _Table = {}
        self._ended: _Table = {}
        # A heap of the ends of both; an item counts while it is in its table.
        self._due: list[tuple[datetime, int, _Table, str, Reservation]] = []
        self._order = itertools.count()
        self._began = False
        self._assumed: Counter[str] = Counter()
        self._summarised: dict[str, datetime] = {}

    def __str__(self) -> str:
        found = sorted(f"{key} on {name}" for name, held in self._reserved.items() for key in held)
        return ", ".join(found) or "none"

    def update(self, key: str, *, now: datetime) -> None:
        """Update the reservation of a vcjob after a change of one of its objects.

        A vcjob that has ended, was moved or is gone leaves its former cluster first, which may
        still have its pods.
        """
        raw = self._job(key)
        if raw is None or not self._is_counted(key, raw):
            known = self._known.pop(key, None)
            if known is not None:
                self._leave(key, known, known.grace, now)
            return
        known = self._remember(key, raw, now)
        cluster, report = self._whereabouts(key, raw)
        ended = report is not None and report.phase.is_terminal
        if ended or cluster != known.cluster:
            early = report is not None and report.pods.running + report.pods.terminating > 0
            self._leave(key, known, known.grace if early or not ended else timedelta(), now)
            known.cluster = "" if ended else cluster
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
        shown = self._is_shown(key, known, cluster, report)
        holds = entry is not None and cluster and not shown and entry.holds(now)
        before = self._reserved.get(cluster, {}).get(key)
        if entry is not None and holds and entry != before:
            self._put(self._reserved, key, entry)
        elif before is not None and not holds:
            self._drop(self._reserved, key, before)
        if known.cluster:
            known.reached = known.reached or report is not None or self._is_reached(key, raw)

    def summarised(self, cluster: str, *, now: datetime) -> None:
        """Record that the summary of a cluster has changed; drop what it shows."""
        self._summarised[cluster] = now
        for table in (self._reserved, self._ended):
            for key, each in list(table.get(cluster, {}).items()):
                if is_listed(each.since, now):
                    self._drop(table, key, each)

    def expire(self, *, now: datetime) -> None:
        """Drop what clusters show after `lag`, whatever their summaries say."""
        while self._due:
            due, _, table, key, each = self._due[0]
            is_current = table.get(each.cluster, {}).get(key) is each
            if is_current and due > now:
                break
            heapq.heappop(self._due)
            if is_current:
                self._drop(table, key, each)

    def take_freed(self) -> list[str]:
        """Return the clusters that have had more room since the last call."""
        freed = sorted(self._freed)
        self._freed.clear()
        return freed

    def reserved(self, *, now: datetime) -> dict[str, Resources]:
        """Return the reserved resources per cluster at a time, which only grows."""
        self.expire(now=now)
        return {name: _sum(held.values()) for name, held in self._reserved.items() if held}

    def follow(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a Cluster: its status is parsed once for each change."""
        name = string(at(new or old, "metadata", "name"))
        self._shown.pop(name, None)  # also after an exception: nothing is placed by an old status
        self._recompute(name)
        if kind is not EventType.DELETED and new is not None:
            self._shown[name] = summarise(new)

    def clusters(
        self, *, now: datetime, promised: Mapping[str, Iterable[PlacementRequest]] | None = None
    ) -> tuple[Cluster, ...]:
        """Return the clusters with their free resources, minus the `promised` requests on each."""
        self.expire(now=now)
        if not self._began:
            self._began = True
            for each in self._shown.values():
                used = subtract(each.allocatable, each.free)
                self._end(_UNKNOWN, each.name, used, now)
        views = self._views(now, ())
        found = tuple(self._cluster(name, views.get(name)) for name in sorted(self._shown))
        if not promised:
            return found
        return tuple(self._less(each, list(promised.get(each.name, ()))) for each in found)

    def room(self, cluster: str, *, now: datetime) -> Resources | None:
        """Return the free resources of a cluster after reservations; None if it is not usable."""
        shown = self._shown.get(cluster)
        if shown is None or not shown.usable:
            return None
        return self._cluster(cluster, self._views(now, (cluster,)).get(cluster)).free

    def _cluster(self, name: str, view: MemberView | None) -> Cluster:
        known = self._left.get(name)
        if known is None or known[0] is not view:
            known = self._left[name] = view, self._computed(self._shown[name], view)
        return known[1]

    def _computed(self, shown: Cluster, view: MemberView | None) -> Cluster:
        """Return a cluster as the reservations leave it."""
        name = shown.name
        held, ended = self._reserved.get(name, {}), dict(self._ended.get(name, {}))
        unsure = ended.pop(_UNKNOWN, None)
        if view is None:
            settling = [each for each in held.values() if each.shown_at is not None]
            settling += [] if unsure is None else [unsure]
            return promised_on(
                shown,
                _sum(held.values()),
                settling=_sum(settling),
                ending={"": _sum(ended.values())},
            )
        ground = ground_of(name, view)
        left = (unshown(each.pods, ground.pods_of(key)) for key, each in held.items())
        pods = tuple(counted(itertools.chain.from_iterable(left)).items())
        demand = request_of_all(pods)
        return promised_on(seen_by_nodes(shown, view), demand, pods, ending=ground.leaving(ended))

    def _less(self, cluster: Cluster, requests: list[PlacementRequest]) -> Cluster:
        """Subtract the requests; mostly the last call has subtracted the same."""
        if not requests:
            return cluster
        known = self._lessened.get(cluster.name)
        if known is None or known[0] is not cluster or known[1] != requests:
            known = self._lessened[cluster.name] = cluster, requests, less(cluster, requests)
        return known[2]

    def _recompute(self, cluster: str) -> None:
        self._left.pop(cluster, None)
        self._lessened.pop(cluster, None)

    def changes_in(self, *, now: datetime) -> timedelta | None:
        """Return the time until a cluster has other room without a change of an object."""
        self.expire(now=now)
        return self._due[0][0] - now if self._due else None

    @contextmanager
    def assumed(self, actions: Iterable[Action], *, namespace: str = "") -> Iterator[None]:
        """Reserve the room of sub-jobs that are being created, inside the context."""
        assumed = [action for action in actions if isinstance(action, CreateChild | Repin)]
        keys = [f"{namespace}/{action.name}" for action in assumed]
        self._assumed.update(keys)
        held = {
            f"{key} {next(self._order)}": Reservation(
                cluster=action.cluster, demand=action.demand, pods=action.pods
            )
            for key, action in zip(keys, assumed, strict=True)
        }  # no vcjob has such a key: its own reservation may come beside it
        for key, each in held.items():
            self._put(self._reserved, key, each)
        try:
            yield
        finally:
            self._assumed.subtract(keys)
            self._assumed += Counter()  # remove keys with a count of 0
            for key, each in held.items():
                self._drop(self._reserved, key, each, frees=False)

    def counts(self, key: str) -> bool:
        """Return whether the reservations or its cluster's status already count a vcjob."""
        return key in self._known or key in self._assumed

    def let_go(self, actions: Iterable[Action]) -> None:
        """Mark the clusters of failed creations as clusters with more room."""
        self._freed |= {each.cluster for each in actions if isinstance(each, CreateChild | Repin)}

    def jobs_on(self, cluster: str) -> list[str]:
        """Return the vcjobs that have room on a cluster, also those that it shows already."""
        return [key for key, known in self._known.items() if known.cluster == cluster]

    def reserves(self, key: str) -> bool:
        """Return whether a vcjob has a reservation."""
        known = self._known.get(key)
        return known is not None and key in self._reserved.get(known.cluster, {})

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
        binding = self._binding_of(key, raw)
        return binding is not None and (binding.applied or binding.report is not None)

    def _remember(self, key: str, raw: Object, now: datetime) -> _Known:
        metadata = mapping(raw.get("metadata"))
        uid, generation = string(metadata.get("uid")), metadata.get("generation")
        known = self._known.get(key)
        if known is None or known.uid != uid or known.generation != generation:
            pods, demand, grace = self._size_of(mapping(raw.get("spec")))
            made = _Known(uid, generation, demand, pods, grace)
            if known is not None and known.uid == uid:
                made.complete_since, made.reached = known.complete_since, known.reached
                made.cluster = known.cluster
            elif known is not None:
                self._leave(key, known, known.grace, now)
            known = self._known[key] = made
        return known

    def _size_of(self, spec: Object) -> tuple[Items, Resources, timedelta]:
        """Return the pods of a vcjob, their sum and grace period; the caches share equal tasks."""
        tasks = spec.get("tasks")

        def size(_tasks: object) -> tuple[Items, Resources, timedelta]:
            pods = items_of(spec)
            return pods, request_of_all(pods), seconds(grace_of(spec))

        return self._sizes.of(id(tasks), tasks, size)

    def _leave(self, key: str, known: _Known, grace: timedelta, now: datetime) -> None:
        """Record that a sub-job has left its cluster, where its pods may run on."""
        if known.cluster:
            self._freed.add(known.cluster)
            held = self._reserved.get(known.cluster, {}).get(key)
            if held is not None:
                self._drop(self._reserved, key, held)
            if known.reached:
                self._end(key, known.cluster, known.demand, later(now, grace))
        known.reached = False

    def _end(self, key: str, cluster: str, demand: Resources, gone: datetime) -> None:
        """Record what a summary may still have of pods that are gone at a time."""
        due = later(gone, self._lag)
        ended = Reservation(cluster=cluster, demand=demand, since=gone, shown_at=due)
        self._put(self._ended, key, ended)

    def _put(self, table: _Table, key: str, each: Reservation) -> None:
        table.setdefault(each.cluster, {})[key] = each
        if each.shown_at is not None:
            heapq.heappush(self._due, (each.shown_at, next(self._order), table, key, each))
        self._recompute(each.cluster)

    def _drop(self, table: _Table, key: str, each: Reservation, *, frees: bool = True) -> None:
        del table[each.cluster][key]
        if table is self._reserved and frees:
            self._freed.add(each.cluster)
        self._recompute(each.cluster)

    def _is_reached(self, key: str, raw: Object) -> bool:
        """Return whether a member has a vcjob, or is about to get it."""
        binding = self._binding_of(key, raw)
        return binding is not None and (binding.applied or not binding.dispatching_suspended)

    def _whereabouts(self, key: str, raw: Object) -> tuple[str, ReportedStatus | None]:
        """Return the cluster of a sub-job, and its report.

        Before a report, the pin of the policy precedes the cluster of the ResourceBinding: a move
        may not have reached Karmada yet.
        """
        report, placed = parse_report(raw.get("status")), ""
        binding = self._binding_of(key, raw)
        if binding is not None:
            report, placed = binding.report or report, binding.cluster
        policy = self._policy(key)
        pins = pinned_clusters(at(policy, "spec", "placement")) if policy is not None else ()
        pin = pins[0] if len(pins) == 1 else ""
        return (placed or pin if report is not None else pin or placed), report

    def _binding_of(self, key: str, raw: Object) -> Binding | None:
        """Return the ResourceBinding of this very vcjob, not of one before it of its name."""
        found = self._binding(key)
        binding = None if found is None else self.parsed(found)
        mine = binding is not None and binding.job_uid == at(raw, "metadata", "uid")
        return binding if mine else None

    def parsed(self, binding: Object) -> Binding:
        """Return a parsed ResourceBinding, once for several events and the pass after them."""
        return self._bindings.of(key_of(binding), binding, parse_binding)


def _sum(reservations: Iterable[Reservation]) -> Resources:
    return total(each.demand for each in reservations)
