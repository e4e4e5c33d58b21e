"""The event handlers, and the guard of the passes that they request.

Handlers know which HyperJobs a changed object concerns, put their keys into the workqueue and
update the reservations. The guard gives a HyperJob at which the controller failed no pass for some
time: its status names the incident meanwhile, by reading nothing but the old one.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from hyperjob_controller.caches import Caches, hyperjob_keys, job_key_of_binding
from hyperjob_controller.memory import SETTLE_SECONDS, Memory
from hyperjob_controller.reconciler import Events, patch_status
from hyperjob_controller.wall import Incident, Wall
from hyperjob_controller.watchdog import Place
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, condition, mapping, objects, string
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.workers import SetAsideError
from hyperjob_engine.expansion.templates import claim_templates_of
from hyperjob_engine.gang.gang import follows_opening, opens_gate
from hyperjob_engine.placement.capacity import summarise
from hyperjob_engine.status.derive import derive_fault
from hyperjob_engine.status.transitions import merge_patch, status_events

# The fields of each kind that a pass reads: other changes request no pass.
_METADATA: Final = (
    ("metadata", "deletionTimestamp"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
)
_LIVES: Final = (("metadata", "uid"), ("metadata", "deletionTimestamp"))
_HYPERJOB: Final = (
    ("metadata", "generation"),
    ("metadata", "annotations", RESTART_REQUEST),
    ("metadata", "annotations", MIGRATE_REQUEST),
    *_METADATA,
)
_CHILD: Final = (*_METADATA, ("spec",), ("status",))
_BINDING: Final = (
    *_METADATA,
    ("metadata", "annotations", GATE),
    ("spec", "clusters"),
    ("spec", "placement"),
    ("spec", "replicaRequirements"),
    ("status", "conditions"),
    ("status", "aggregatedStatus"),
)
_SUSPENSION: Final = ("spec", "suspension")
_CANDIDACY: Final = (
    ("metadata", "deletionTimestamp"),
    ("spec",),
    ("status", "conditions"),
    ("status", "apiEnablements"),
)
_CLUSTER: Final = (*_CANDIDACY, ("status", "resourceSummary"))
_COUNTED: Final = (
    ("status", "resourceSummary", "allocated"),
    ("status", "resourceSummary", "allocating"),
)


class Handlers:
    """The event handlers of the controller's informers."""

    def __init__(
        self,
        caches: Caches,
        queue: WorkQueue[str],
        memory: Memory,
        *,
        wall: Wall,
        settle: Callable[[str], float],
        now: Callable[[], datetime],
    ) -> None:
        """Add handlers to the caches, which call them at once for all objects they hold.

        Before `begin`, events are about objects from the informers' first lists. `settle` returns
        the seconds for which changes of a HyperJob's sub-jobs are collected for one pass.
        """
        self._caches = caches
        self._queue = queue
        self._memory = memory
        self._wall = wall
        self._settle = settle
        self._now = now
        self._begun = False
        caches.add_handler(HYPERJOBS, self._hyperjob)
        caches.add_handler(VCJOBS, self._child)
        caches.add_handler(PROPAGATION_POLICIES, self._policy)
        caches.add_handler(RESOURCE_BINDINGS, self._binding)
        caches.clusters.add_handler(self._cluster)
        caches.priority_classes.add_handler(self._priority_class)
        caches.claim_templates.add_handler(self._claim_template)

    def begin(self) -> Iterator[None]:
        """Update the reservation of every sub-job, one by one, after the sync of all caches."""
        self._begun = True
        for job in self._caches.jobs.items():
            with self._wall.around(hyperjob_keys(job), Place.EVENT):
                self._update(key_of(job))
            yield

    def refresh(self, key: str) -> None:
        """Update the reservations of a HyperJob's sub-jobs again, of which some have failed."""
        for job in self._caches.jobs_of(key):
            self._update(key_of(job))

    def shown(self, jobs: Iterable[str]) -> None:
        """Update the reservations of vcjobs of which a member shows further pods."""
        for key in jobs:
            if self._begun and self._memory.reservations.reserves(key):
                self._update(key)

    def turned(self, cluster: str) -> None:
        """Update the reservations of a cluster of which the nodes are known now, or no more."""
        for key in self._memory.reservations.jobs_on(cluster) if self._begun else ():
            self._update(key)
        self._memory.wake_freed([cluster], now=self._now())

    def faulty(self, resource: Resource, obj: Object, error: Exception) -> None:
        """Set aside the HyperJobs of an object whose event handler has failed."""
        if not self._wall.blame(self._concerned(resource, obj), error, Place.EVENT):
            self._wall.failed_at(Place.EVENT, resource, obj, error)

    def _concerned(self, resource: Resource, obj: Object) -> list[str]:
        """Return the HyperJobs of an object; none of an object without a namespace, as a Cluster.

        Of a ResourceBinding they are those of its vcjob, or of the vcjob's name after its deletion.
        """
        if resource == HYPERJOBS:
            return [key_of(obj)]
        if resource == RESOURCE_BINDINGS:
            job_key = job_key_of_binding(obj)
            job = None if job_key is None else self._caches.job(job_key)
            if job is None:
                return [] if job_key is None else self._by_name(job_key)
            obj = job
        return sorted(hyperjob_keys(obj)) if resource.namespaced else []

    def _hyperjob(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Request a pass after a change of a HyperJob that the controller did not write itself.

        The reservations of its sub-jobs count only while it exists.
        """
        obj = new if new is not None else old
        if obj is None:
            return
        key, status = key_of(obj), at(obj, "status")
        if not self._begun:
            self._queue.add(key, low=_is_settled(obj))
            return
        if kind is not EventType.MODIFIED or not _same(old, new, _LIVES):
            for job in self._caches.jobs_of(key):
                self._update(key_of(job))
        if (
            kind is EventType.MODIFIED
            and _same(old, new, _HYPERJOB)
            and (at(old, "status") == status or self._caches.is_expected(key, status))
        ):
            return
        self._queue.add(key)

    def _policy(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a PropagationPolicy, unless only its gate was opened: that changes no plan."""
        if not (kind is EventType.MODIFIED and _same(old, new, _METADATA) and opens_gate(old, new)):
            self._child(kind, old, new)

    def _child(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Update the reservation of a changed vcjob or policy; request passes of its HyperJobs."""
        obj = new if new is not None else old
        if obj is None or (kind is EventType.MODIFIED and _same(old, new, _CHILD)):
            return
        if not self._begun:
            for key in hyperjob_keys(obj):
                self._queue.add(key, low=True)
            return
        self._update(key_of(obj))
        # After the creation of a vcjob its ResourceBinding follows soon: one pass is enough.
        urgent = kind is EventType.DELETED
        for key in sorted({*hyperjob_keys(obj), *(hyperjob_keys(old) if old else ())}):
            self._queue.add_after(key, 0 if urgent else self._settle(key))

    def _binding(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Update the reservation of a changed ResourceBinding; request passes of its HyperJobs.

        A suspension that ends after the opening of its gate changes reservations, but no plan.
        """
        obj = new if new is not None else old
        if obj is None or not self._begun:  # a pass of each HyperJob is due at the begin
            return
        for user in self._caches.users_of_claim(old, new):
            self._request(user)
        job_key = job_key_of_binding(obj)
        alike = kind is EventType.MODIFIED and _same(old, new, _BINDING)
        if job_key is None or (alike and _same(old, new, (_SUSPENSION,))):
            return
        self._update(job_key)
        if alike and self._follows_opening(job_key, old, obj):
            return
        self._request(job_key)

    def _request(self, job_key: str) -> None:
        """Request a pass of the HyperJobs of a vcjob, by its name after its deletion."""
        job = self._caches.job(job_key)
        keys = hyperjob_keys(job) if job is not None else self._by_name(job_key)
        for key in sorted(keys):
            self._queue.add_after(key, self._settle(key))

    def _follows_opening(self, job_key: str, old: Object | None, new: Object) -> bool:
        binding, policy = self._memory.reservations.parsed(new), self._caches.policy(job_key)
        return follows_opening(old, new, policy=policy, binding=binding)

    def _by_name(self, job_key: str) -> list[str]:
        """Return the HyperJobs to which a deleted vcjob may have belonged, by its name."""
        ends = (number for number, letter in enumerate(job_key) if letter == "-")
        return [job_key[:end] for end in ends if self._caches.hyperjob(job_key[:end]) is not None]

    def _cluster(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a Cluster: more room wakes waiting HyperJobs, less room changes their messages.

        The summary settles reservations, and a change of Ready concerns the HyperJobs there.
        """
        name = string(at(new if new is not None else old, "metadata", "name"))
        if kind is not EventType.MODIFIED or not _same(old, new, _CLUSTER):
            if kind is EventType.DELETED or _only_shrank(old, new):
                self._memory.shrunk()
            else:
                self._memory.wake_freed([name], now=self._now())
        if kind is EventType.MODIFIED and not _same(old, new, _COUNTED):
            self._memory.reservations.summarised(name, now=self._now())
            self._memory.wake_freed(now=self._now())
        if kind is EventType.DELETED or (self._begun and _readiness(old) != _readiness(new)):
            self._concern(name)

    def _concern(self, cluster: str) -> None:
        """Request passes of the HyperJobs on a cluster that becomes Ready, not Ready or deleted."""
        for obj in self._caches.hyperjobs.items():
            jobs = objects(at(obj, "status", "jobs"))
            if any(job.get("cluster") == cluster for job in jobs):
                self._queue.add(key_of(obj))

    def _update(self, job_key: str) -> None:
        self._memory.reservations.update(job_key, now=self._now())
        self._memory.wake_freed(now=self._now())

    def _claim_template(self, _kind: EventType, old: Object | None, new: Object | None) -> None:
        """Request passes of the HyperJobs whose pods get devices by a ResourceClaimTemplate."""
        namespace, _, name = key_of(new or old or {}).rpartition("/")
        if not _same(old, new, (("spec",),)):
            self._naming(lambda template: name in claim_templates_of(template), namespace)

    def _priority_class(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        if kind is not EventType.MODIFIED or at(old, "value") != at(new, "value"):
            self._memory.admission.priorities_changed()
        if kind is not EventType.MODIFIED:
            name = at(new or old, "metadata", "name")
            self._naming(lambda template: template.get("priorityClassName") == name)

    def _naming(self, names: Callable[[Object], bool], namespace: str = "") -> None:
        """Request passes of the HyperJobs with a template that names an object."""
        for obj in self._caches.hyperjobs.items():
            jobs = objects(at(obj, "spec", "replicatedJobs"))
            if namespace in ("", at(obj, "metadata", "namespace")) and any(
                names(mapping(each.get("templateSpec"))) for each in jobs
            ):
                self._queue.add(key_of(obj))


def _is_settled(hyperjob: Object) -> bool:
    """Return whether the status of a HyperJob is of its present generation."""
    seen = at(hyperjob, "status", "observedGeneration")
    return seen is not None and seen == at(hyperjob, "metadata", "generation")


def _only_shrank(old: Object | None, new: Object | None) -> bool:
    """Return whether a cluster is as usable as before and has more free of no resource."""
    if old is None or new is None or not _same(old, new, _CANDIDACY):
        return False
    before, after = summarise(old).free, summarise(new).free
    return all(amount <= before.get(name, 0) for name, amount in after.items())


def _readiness(cluster: Object | None) -> object:
    return condition(mapping(at(cluster, "status")), "Ready").get("status")


def _same(old: Object | None, new: Object | None, paths: Iterable[tuple[str, ...]]) -> bool:
    """Return whether two objects are equal at all these paths."""
    return all(at(old, *path) == at(new, *path) for path in paths)


Reconcile = Callable[[str], Awaitable[timedelta | None]]

REST: Final = 3.0
"""A HyperJob rests for so many times the duration of its last pass."""
LONGEST_REST: Final = 0.5
"""Seconds of the longest rest: a status must be up to date within a second."""


class PassRateLimit:
    """The rate limiter of passes, by HyperJob."""

    def __init__(
        self, reconcile: Reconcile, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._took: dict[str, float] = {}  # seconds, only of HyperJobs that must rest
        self._rested: dict[str, float] = {}

    def settle_seconds(self, key: str) -> float:
        """Return the seconds for which changes of a HyperJob's sub-jobs are collected."""
        return max(SETTLE_SECONDS, self._rested.get(key, 0.0) - self._clock())

    async def reconcile(self, key: str) -> timedelta | None:
        """Make a pass and record its duration."""
        began = self._clock()
        if key in self._took:  # changes during a pass wait like changes after it
            self._rested[key] = began + self._took[key] + _rest(self._took[key])
        try:
            return await self._reconcile(key)
        finally:
            ended = self._clock()
            rest = _rest(ended - began)
            if rest > SETTLE_SECONDS:
                self._took[key] = ended - began
                self._rested[key] = ended + rest
            else:
                self._took.pop(key, None)
                self._rested.pop(key, None)


def _rest(seconds: float) -> float:
    return min(LONGEST_REST, REST * seconds)


_ENDED = frozenset({Phase.COMPLETED, Phase.FAILED})


class Guard:
    """Makes the passes of the HyperJobs that are not set aside."""

    def __init__(
        self,
        reconcile: Reconcile,
        wall: Wall,
        kube: Kube,
        caches: Caches,
        *,
        events: Events,
        now: Callable[[], datetime],
        refresh: Callable[[str], None],
    ) -> None:
        """`refresh` repeats what the event handlers do for a HyperJob's vcjobs."""
        self._reconcile = reconcile
        self._wall = wall
        self._kube = kube
        self._caches = caches
        self._events = events
        self._now = now
        self._refresh = refresh
        self._aside: set[str] = set()

    async def reconcile(self, key: str) -> timedelta | None:
        """Make a pass; return the time until the next. Raises SetAsideError after a bug.

        So it does after a turn that took too long, whose decision the pass has carried out.
        """
        incident = self._wall.incident(key)
        if incident is not None:
            return await self._name(key, incident)
        try:
            if key in self._aside:
                self._aside.discard(key)
                self._refresh(key)
            again = await self._reconcile(key)
        except (KubeError, TimeoutError):
            raise
        except Exception as error:
            incident = self._wall.caught(key, error, Place.RECONCILE)
            raise SetAsideError(await self._name(key, incident)) from error
        incident = self._wall.incident(key)
        if incident is not None:
            raise SetAsideError(await self._name(key, incident))
        if self._caches.hyperjob(key) is None:
            self._aside.discard(key)
            self._wall.forget(key)
        return again

    async def _name(self, key: str, incident: Incident) -> timedelta:
        """Name the incident in the status of a HyperJob; return the rest of its back-off."""
        self._aside.add(key)
        wait = max(incident.until - self._now(), timedelta(milliseconds=1))
        try:
            await self._write(key, incident)
        except (KubeError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - the wall
            self._wall.failed(Place.RECONCILE, error)
        return wait

    async def _write(self, key: str, incident: Incident) -> None:
        """Write the incident into the status, unless the HyperJob has ended or names it already."""
        raw = self._caches.hyperjob(key)
        old = mapping(at(raw, "status"))
        if raw is None or string(at(old, "state", "phase")) in _ENDED:
            return
        status = derive_fault(old, incident.number, now=self._now())
        patch = merge_patch({"state": old.get("state")}, status)
        version = at(raw, "metadata", "resourceVersion")
        if patch and await patch_status(self._kube, self._caches, key, patch, version) is not None:
            self._events.record(key, status_events(old, {**old, **status}))
