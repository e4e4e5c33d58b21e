"""From the caches to one `Observed`: everything a plan may depend on, taken at one instant.

Reads memory only and never awaits, so nothing changes while it looks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from controller.admission import Admission
from controller.caches import Caches
from controller.expansion.expand import SpecError, check_size, sub_job_count
from controller.firstinline import FirstInLine
from controller.ledger import Ledger
from controller.model.observed import (
    Binding,
    Cluster,
    HyperJob,
    Job,
    Observed,
    Policy,
    QueueAdmission,
    ReplicatedJob,
)
from controller.model.parse import parse_binding, parse_hyperjob, parse_job, parse_policy
from controller.model.resources import Resources, subtract
from controller.model.wire import at, string
from controller.namesakes import Namesakes
from controller.parsed import Parsed
from controller.placement.capacity import Candidacy, Summary, candidates, less, summarise
from controller.priorities import Priorities
from controller.refusals import Refusals
from controller.splitting.client import Splitter
from controller.waiting import Waiting
from hyperjob.api.limits import MAX_SUB_JOBS
from hyperjob.api.meta import Object
from hyperjob.api.names import child_name
from hyperjob.kube.client import EventType

_SOON = timedelta(seconds=1)


class Observer:
    """Looks at the caches for one HyperJob at a time."""

    def __init__(
        self,
        caches: Caches,
        ledger: Ledger,
        refusals: Refusals,
        *,
        admission: Callable[[], QueueAdmission],
        candidacy: Candidacy,
        cluster_lost_timeout: timedelta,
        gang_timeout: timedelta,
        silence_timeout: timedelta,
        waiting: Waiting,
        line: FirstInLine,
        priorities: Priorities,
        now: Callable[[], datetime],
        own: Admission | None = None,
        splitter: Splitter | None = None,
    ) -> None:
        """`own` is our own queue admission, in the mode that has it."""
        self._own = own
        self._splitter = splitter
        self._caches = caches
        self._ledger = ledger
        self._refusals = refusals
        self._admission = admission
        self._candidacy = candidacy
        self._cluster_lost_timeout = cluster_lost_timeout
        self._gang_timeout = gang_timeout
        self._silence_timeout = silence_timeout
        self._waiting = waiting
        self._line = line
        self._priorities = priorities
        self._now = now
        self._jobs: Parsed[Job] = Parsed()
        self._policies: Parsed[Policy] = Parsed()
        self._bindings: Parsed[Binding] = Parsed()
        self._summaries: dict[str, Summary] = {}
        self._namesakes = Namesakes(now=now)
        caches.jobs.add_handler(self._namesakes.changed)
        caches.clusters.add_handler(self._cluster_changed)

    def observe(self, key: str) -> Observed | None:
        """Give what is known about a HyperJob, or None when there is none."""
        raw = self._caches.hyperjob(key)
        if raw is None:
            for parsed in (self._jobs, self._policies, self._bindings):
                parsed.forget(key)
            return None
        now, admission = self._now(), self._admission()
        hyperjob = parse_hyperjob(raw)
        owner = hyperjob.name, hyperjob.uid
        names = _wanted(hyperjob)
        jobs = self._jobs.of(
            key, self._caches.jobs_of(key, names), partial(parse_job, owner=hyperjob), view=owner
        )
        policies = self._policies.of(
            key,
            self._caches.policies_of(key, names),
            partial(parse_policy, owner=hyperjob),
            view=owner,
        )
        bindings = self._bindings_of(key, hyperjob.namespace, [job.name for job in jobs], names)
        refused = {binding.job_uid for binding in bindings.values() if binding.apply_error}
        for job in jobs:
            if job.uid in refused:
                self._namesakes.not_applied(job.uid)
        priority = self._priorities.of(hyperjob)
        own = self._own if self._own is not None and self._own.at_work else None
        observed = Observed(
            hyperjob=hyperjob,
            jobs={job.name: job for job in jobs},
            policies={policy.name: policy for policy in policies},
            bindings=bindings,
            clusters=self.clusters(now=now, but=key),
            refusals=self._refusals.of(key, uid=hyperjob.uid, generation=hyperjob.generation),
            admission=admission,
            now=now,
            queues=self._queues(),
            capacity_changes_in=self._capacity_changes_in(key, now=now),
            cluster_lost_timeout=self._cluster_lost_timeout,
            gang_timeout=self._gang_timeout,
            silence_timeout=self._silence_timeout,
            followers={job.name for job in jobs if self._namesakes.is_follower(job.uid)},
            contended=self._line.is_contended(key) or (own is not None and own.is_contended(key)),
            priority=priority,
            kept=self._line.kept_from((-priority, hyperjob.created, key)),
            split_answers=None if self._splitter is None else self._splitter.answers(key),
        )
        return observed if own is None else replace(observed, verdict=own.judge(observed))

    def clusters(self, *, now: datetime, but: str | None = None) -> tuple[Cluster, ...]:
        """Give the member clusters with what is free on them.

        With `but`, what was promised to HyperJobs other than this one is not free either.
        """
        found = candidates(
            self._summaries.values(),
            self._ledger.reserved(now=now),
            self._ledger.settling(now=now),
            self._ledger.pods(now=now),
        )
        promised = self._own.promised(but) if self._own is not None and but is not None else {}
        if not promised:
            return found
        return tuple(less(each, promised.get(each.name, ())) for each in found)

    def room(self, cluster: str) -> Resources | None:
        """Give what a cluster has free after reservations, None when it is no candidate."""
        summary = self._summaries.get(cluster)
        if summary is None or not summary.usable:
            return None
        return subtract(summary.free, self._ledger.held_on(cluster))

    def capacity(self) -> tuple[Sequence[Cluster], Mapping[str, Resources]]:
        """Give the clusters with what is free after reservations, and what their status shows."""
        shown = {each.name: each.free for each in self._summaries.values()}
        return self.clusters(now=self._now()), shown

    def eventual(self) -> tuple[Sequence[Cluster], Mapping[str, Resources]]:
        """Give the clusters, and what will be free on each once all HyperJobs have ended."""
        now = self._now()
        found = self.clusters(now=now)
        usable = [cluster for cluster in found if cluster.usable]
        return found, self._ledger.eventual(usable, now=now)

    def _capacity_changes_in(self, key: str, *, now: datetime) -> timedelta | None:
        """Tell the one that keeps the time for all when capacity changes by time alone."""
        if not self._waiting.keeps_time(key):
            return None
        known = self._ledger.next_change(now=now), self._ledger.eventual_changes_in(now=now)
        return min((max(wait, _SOON) for wait in known if wait is not None), default=None)

    def _bindings_of(
        self, key: str, namespace: str, jobs: Sequence[str], wanted: Sequence[str]
    ) -> dict[str, Binding]:
        """Give the bindings of sub-jobs, those too that outlive their vcjob."""
        names = dict.fromkeys((*jobs, *wanted))
        looked_up = (self._caches.binding_of(f"{namespace}/{name}") for name in names)
        found = [raw for raw in looked_up if raw is not None]
        bindings = self._bindings.of(key, found, parse_binding, view=None)
        return {binding.name: binding for binding in bindings}

    def _queues(self) -> dict[str, str] | None:
        queues = self._caches.queues
        if not queues.synced.is_set():
            return None
        return {
            string(at(queue, "metadata", "name")): string(at(queue, "status", "state"))
            for queue in queues.items()
        }

    def _cluster_changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        if kind is EventType.DELETED or new is None:
            self._summaries.pop(string(at(old, "metadata", "name")), None)
            return
        summary = summarise(new, self._candidacy)
        self._summaries[summary.name] = summary


def _wanted(hyperjob: HyperJob) -> list[str]:
    """Name the sub-jobs that the status of a HyperJob has, and those that its spec counts.

    A HyperJob that is deleted wants none, and a plan refuses a spec that counts too many.
    """
    if hyperjob.deleting:
        return []
    try:
        check_size(hyperjob)
    except SpecError:
        return list(hyperjob.records)
    counted = (
        child_name(hyperjob.name, group.name, index)
        for group in hyperjob.replicated_jobs
        for index in range(_count(group))
    )
    return list(dict.fromkeys((*hyperjob.records, *counted)))


def _count(group: ReplicatedJob) -> int:
    """Count the sub-jobs that a group may have by its spec."""
    is_auto = group.split is not None and group.split.mode == "auto"
    return min(group.replicas, MAX_SUB_JOBS) if is_auto else sub_job_count(group)
