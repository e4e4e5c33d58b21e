"""The first two steps of a pass: the update of the memory, and `Observed`, the input of a plan.

They read caches and memory only and never await: these do not change meanwhile. The later steps,
observe and plan, only read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from hyperjob_controller.caches import Caches
from hyperjob_controller.members.causes import CauseReader
from hyperjob_controller.members.reader import Members
from hyperjob_controller.memory import Memory
from hyperjob_core.api.limits import MAX_SUB_JOBS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import child_name
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.resources import key_of, split_key
from hyperjob_engine.expansion.expand import SpecError, check_size, sub_job_count
from hyperjob_engine.expansion.templates import with_devices
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.model.claimcopies import Claim, parse_claim
from hyperjob_engine.model.observed import (
    Binding,
    HyperJob,
    Job,
    Limits,
    Observed,
    Policy,
    QueueAdmission,
    ReplicatedJob,
)
from hyperjob_engine.model.parse import parse_binding, parse_hyperjob, parse_job, parse_policy
from hyperjob_engine.model.planned import DeleteWork
from hyperjob_engine.model.subjobs import choosing
from hyperjob_queueing.queues import missing_from, preempts, priority_of
from hyperjob_queueing.verdict import choice_in

if TYPE_CHECKING:
    from hyperjob_controller.splitting import Splitter  # aiohttp: a slow import
    from hyperjob_controller.training.reader import Reader

T = TypeVar("T")

_MOST: Final = 4096


class Parsed(Generic[T]):
    """The objects of one kind, by HyperJob.

    An object is recognised by its identity, because the caches replace changed objects.
    """

    def __init__(self, most: int = _MOST) -> None:
        """`most` is the greatest number of objects; a HyperJob with more is the only entry."""
        self._most = most
        self._held = 0
        # Each entry refers to its object: no other object can have the same id.
        self._known: dict[str, tuple[object, dict[int, tuple[Object, T]]]] = {}

    def of(
        self, key: str, items: Iterable[Object], parse: Callable[[Object], T], *, view: object
    ) -> list[T]:
        """Return a HyperJob's parsed objects; `view` is the other input of `parse`."""
        seen_from, known = self._known.get(key, (view, {}))
        if seen_from != view:
            known = {}
        entries = {id(raw): known.get(id(raw)) or (raw, parse(raw)) for raw in items}
        self.forget(key)
        if entries:
            self._known[key] = view, entries  # at the end, as the latest
            self._held += len(entries)
        while self._held > self._most and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        return [item for _, item in entries.values()]

    def keep(self, key: str, items: Iterable[Object | None]) -> None:
        """Drop the objects of a HyperJob unless they are these: replaced ones take memory."""
        _, entries = self._known.get(key, (None, {}))
        if entries.keys() != {id(item) for item in items}:
            self.forget(key)

    def forget(self, key: str) -> None:
        """Drop the objects of a HyperJob."""
        _, entries = self._known.pop(key, (None, {}))
        self._held -= len(entries)


_PARSED: Final = 1024
"""The parsed HyperJobs in memory: each needs ten times the memory of another parsed object."""
_SOON: Final = timedelta(seconds=1)
"""The shortest time until a pass for capacity that changes without a change of an object."""


class Observer:
    """Reads the caches for one HyperJob at a time."""

    def __init__(
        self,
        caches: Caches,
        memory: Memory,
        *,
        limits: Limits,
        admission: Callable[[], QueueAdmission],
        now: Callable[[], datetime],
        decides_alone: Callable[[], bool] = lambda: False,
        splitter: "Splitter | None" = None,
        cause_reader: CauseReader | None = None,
        reader: "Reader | None" = None,
        members: Members | None = None,
    ) -> None:
        self._caches = caches
        self._memory = memory
        self._limits = limits
        self._admission = admission
        self._now = now
        self._decides_alone = decides_alone
        self._splitter = splitter
        self._cause_reader = cause_reader
        self._reader = reader
        self._members = members
        self._hyperjobs: Parsed[HyperJob] = Parsed(_PARSED)
        self._jobs: Parsed[Job] = Parsed()
        self._policies: Parsed[Policy] = Parsed()
        self._bindings: Parsed[Binding] = Parsed()
        self._claims: Parsed[Claim] = Parsed()  # by claim: many HyperJobs may share one

    def update(self, key: str) -> Observed | None:
        """Update the memory with a HyperJob and return its objects; None for a deleted HyperJob."""
        seen = self.objects_of(key)
        if seen is None:
            remains = self.remains(key)
            self.forget(key)
            self._memory.forget(key, remains)
            return None
        self._memory.update(seen)
        return seen

    def objects_of(self, key: str) -> Observed | None:
        """Return a HyperJob with its own objects, without queue and clusters.

        The result is None if the HyperJob does not exist.
        """
        raw = self._caches.hyperjob(key)
        if raw is None:
            return None
        now = self._now()
        (hyperjob,) = self._hyperjobs.of(key, [raw], parse_hyperjob, view=None)
        hyperjob = with_devices(hyperjob, self._caches.claim_templates.get)
        hyperjob = choosing(hyperjob, choice_in(self._memory.admission.state, key))
        owner, names = (hyperjob.name, hyperjob.uid), _wanted(hyperjob)
        of_job = partial(parse_job, owner=hyperjob)
        jobs = self._jobs.of(key, self._caches.jobs_of(key, names), of_job, view=owner)
        of_policy = partial(parse_policy, owner=hyperjob)
        found = self._policies.of(key, self._caches.policies_of(key, names), of_policy, view=owner)
        bindings = self._bindings_of(key, hyperjob.namespace, [job.name for job in jobs], names)
        classes = {key_of(each): each for each in self._caches.priority_classes.items()}
        admission = self._admission()
        beside = admission is QueueAdmission.VOLCANO_GLOBAL
        seen = Observed(
            hyperjob=hyperjob,
            jobs={job.name: job for job in jobs},
            policies={policy.name: policy for policy in found},
            bindings=bindings,
            missing_classes=missing_from(hyperjob, classes) if beside else frozenset(),
            clusters=(),
            refusals=self._memory.refusals.of(
                key, uid=hyperjob.uid, generation=hyperjob.generation
            ),
            admission=admission,
            decides_alone=self._decides_alone(),
            now=now,
            queues=self._queues(),
            closed_queues=self._memory.closed_queues.of(hyperjob),
            limits=self._limits,
            followers=self._followers(jobs, bindings.values()),
            priority=priority_of(hyperjob, classes),
            preempts=preempts(hyperjob, classes),
            trainings={} if self._reader is None else self._reader.trainings(key),
            hang=None if self._reader is None else self._reader.hang(key),
            waits=() if self._reader is None else self._reader.waits(key),
            split_answers=None if self._splitter is None else self._splitter.answers(key),
            causes=None if self._cause_reader is None else self._cause_reader.causes(key),
            asked={} if self._cause_reader is None else self._cause_reader.asked(key),
            claims=self._claims_of(hyperjob, bindings),
        )
        return self._with_members(seen)

    def _followers(self, jobs: Iterable[Job], bindings: Iterable[Binding]) -> set[str]:
        refused = {each.job_uid for each in bindings if each.apply_error}
        is_follower = self._memory.tombstones.is_follower
        return {job.name for job in jobs if job.uid in refused or is_follower(job.uid)}

    def _with_members(self, seen: Observed) -> Observed:
        """Return the observation with what the members show of the sub-jobs."""
        members, hyperjob = self._members, seen.hyperjob
        if members is None:
            return seen
        # A sub-job that an elastic HyperJob gave up has no record: its pods may be in any member.
        gone = {name: JobStatus(name=name) for name in hyperjob.stop.jobs} if hyperjob.stop else {}
        recorded = hyperjob.namespace, {**gone, **hyperjob.records}
        left = members.pods_left(*recorded, seen.now, lost=seen.limits.cluster_lost)
        alone = [name for name, pods in left.items() if pods and name not in seen.jobs]
        return replace(
            seen,
            pods_left=left,
            pods_staying=members.staying(hyperjob.namespace, alone, seen.now) if alone else {},
            pods_refused=members.told(MemberFold.refused, *recorded),
            unschedulable=members.told(MemberFold.unschedulable, *recorded, now=seen.now),
            pod_troubles=members.told(
                lambda fold, job: fold.trouble(job, seen.now), *recorded, now=seen.now
            ),
        )

    def observe(self, seen: Observed) -> Observed:
        """Return the observation with the decision of its queue and the clusters' free room."""
        key, memory = seen.hyperjob.key, self._memory
        admission, reservations = memory.admission, memory.reservations
        verdict = admission.verdict(key)
        if verdict.undecided:  # the next round of the queue decides
            return replace(seen, clusters=reservations.clusters(now=seen.now), verdict=verdict)
        wait, releases = reservations.changes_in(now=seen.now), admission.releases
        return replace(
            seen,
            clusters=reservations.clusters(now=seen.now, promised=admission.reserved(key)),
            verdict=verdict,
            ending=admission.ending(key) if seen.hyperjob.suspend else {},
            contended=admission.is_contended(key),
            capacity_changes_in=None if wait is None else max(wait, _SOON),
            passed_over=_named(seen, releases.passed_over),
            unanswered=_named(seen, releases.unanswered),
            forgotten=_named(seen, releases.forgotten),
        )

    def remains(self, key: str) -> list[tuple[Object, Binding]]:
        """Return the remaining vcjobs of a deleted HyperJob, with their ResourceBindings."""
        found = []
        for job in self._caches.jobs_of(key):
            binding = self._caches.binding_of(key_of(job))
            if binding is not None:
                found.append((job, parse_binding(binding)))
        return found

    def last_jobs(self, key: str) -> frozenset[str]:
        """Return the vcjobs that a deleted HyperJob had, until the members have forgotten it."""
        return self._members.jobs_of(key) if self._members is not None else frozenset()

    def forgotten(self, jobs: Iterable[str]) -> list[DeleteWork]:
        """Return what deletes the Works of vcjobs whose pods stay, without a ResourceBinding."""
        unbound = [split_key(job) for job in jobs if self._caches.binding_of(job) is None]
        if self._members is None or not unbound:
            return []
        names = [name for _, name in unbound]
        staying = self._members.staying(unbound[0][0] or "", names, self._now())
        return [DeleteWork(name=name, clusters=where) for name, where in staying.items()]

    def orphans(self) -> dict[str, list[DeleteWork]]:
        """Return, by namespace, what deletes the Works of vcjobs that only members have."""
        known = self._members.strays() if self._members is not None else ()
        by_namespace: dict[str, list[str]] = {}
        for job in known:
            if self._caches.job(job) is None:
                by_namespace.setdefault(split_key(job)[0] or "", []).append(job)
        return {namespace: self.forgotten(jobs) for namespace, jobs in by_namespace.items()}

    def release(self, key: str) -> None:
        """Drop the parsed HyperJob if its status has been written: its object is another now."""
        self._hyperjobs.keep(key, [self._caches.hyperjob(key)])

    def forget(self, key: str) -> None:
        """Drop the parsed objects of a deleted HyperJob."""
        for parsed in (self._hyperjobs, self._jobs, self._policies, self._bindings):
            parsed.forget(key)

    def _bindings_of(
        self, key: str, namespace: str, jobs: Sequence[str], wanted: Sequence[str]
    ) -> dict[str, Binding]:
        """Return the ResourceBindings of sub-jobs, also of those without a vcjob."""
        names = dict.fromkeys((*jobs, *wanted))
        looked_up = (self._caches.binding_of(f"{namespace}/{name}") for name in names)
        found = [raw for raw in looked_up if raw is not None]
        parsed = self._memory.reservations.parsed
        bindings = self._bindings.of(key, found, parsed, view=None)
        return {binding.name: binding for binding in bindings}

    def _claims_of(self, hyperjob: HyperJob, bindings: Iterable[str]) -> tuple[Claim, ...]:
        """Return the claims that the sub-jobs need, and those that the status has."""
        recorded = objects(hyperjob.status.get("persistentVolumeClaims"))
        names = [string(each.get("name")) for each in recorded]
        return tuple(
            claim
            for raw in self._caches.claims_of(hyperjob.namespace, bindings, names)
            for claim in self._claims.of(key_of(raw), [raw], parse_claim, view=None)
        )

    def _queues(self) -> dict[str, str] | None:
        queues = self._caches.queues
        if not queues.synced.is_set():
            return None
        return {
            string(at(queue, "metadata", "name")): string(at(queue, "status", "state"))
            for queue in queues.items()
        }


def _named(seen: Observed, applies: Callable[..., bool]) -> frozenset[str]:
    """Return the names of the vcjobs to which something applies now."""
    namespace = seen.hyperjob.namespace
    return frozenset(name for name in seen.jobs if applies(f"{namespace}/{name}", now=seen.now))


def _wanted(hyperjob: HyperJob) -> list[str]:
    """Return the names of the sub-jobs in the status of a HyperJob and in its spec.

    A HyperJob that is being deleted has none. A spec with too many adds none to the status.
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
    """Return the greatest number of sub-jobs that a replicatedJob may have by its spec."""
    return min(group.replicas, MAX_SUB_JOBS) if group.is_auto else sub_job_count(group)
