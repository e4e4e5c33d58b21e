"""The controller's memory: what passes leave for later passes, and what a restart may lose.

One value holds all of it; `str` prints it. The step `update` of a pass writes it, and so do the
event handlers of Clusters and vcjobs. Reservations are built again from the caches
after a restart; after it refused objects are tried at once, and no name was deleted recently. All
else is in the status of a HyperJob or on its objects before the controller acts on it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob_controller.admission.engine import Admission
from hyperjob_controller.reservations import Reservations
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import key_of
from hyperjob_engine.model.observed import Binding, HyperJob, Observed, Refusal
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.model.request import ClosedQueue
from hyperjob_engine.model.subjobs import queue_of
from hyperjob_engine.resources import Resources, fits
from hyperjob_queueing.queues import closed_queue

_FIRST: Final = 5.0
_LONGEST: Final = 300.0
_FIRST_OUTAGE: Final = timedelta(seconds=1)
_LONGEST_OUTAGE: Final = timedelta(seconds=10)
_AFTER_PROBE: Final = timedelta(seconds=1)
"""How long after the first HyperJob the others try: its try extends the outage, or ends it."""
_FORGOTTEN: Final = timedelta(minutes=1)
"""A failure so long after the last try begins another outage, with the shortest wait."""
_KEPT: Final = timedelta(seconds=10)
"""How long an outage lasts before other HyperJobs get the room of what cannot be created."""


@dataclass(slots=True)
class _Outage:
    """The shared wait of the HyperJobs `keys`; the first of them tries first, at `until`.

    The outage began at `since`. A success resets `since` and keeps `wait`, for a failure that
    follows soon. The last failure came `took` after its try: a webhook may not answer at all.
    """

    since: datetime
    until: datetime
    wait: timedelta
    took: timedelta
    keys: dict[str, None] = field(default_factory=dict)

    @property
    def probe(self) -> str:
        """Return the HyperJob that tries first; empty if none waits."""
        return next(iter(self.keys), "")

    def retry_at(self, key: str) -> datetime:
        """Return when a HyperJob tries again; the others wait for the answer to the first one."""
        return self.until + (timedelta() if key == self.probe else self.took + _AFTER_PROBE)


@dataclass(slots=True)
class _Memory:
    uid: str
    generation: int
    refusals: dict[str, Refusal] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    unjudged: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Reason and message of an outage, by sub-job."""
    outage: str | None = None  # the scope of the outage, while a sub-job is unjudged


class Refusals:
    """Refusals by HyperJob and sub-job; a changed spec clears them."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._memories: dict[str, _Memory] = {}
        self._outages: dict[str, _Outage] = {}

    def __len__(self) -> int:
        return len(self._memories) + len(self._outages)

    def __str__(self) -> str:
        """Return each refused sub-job with the reason and the time of the next try."""
        found = [
            f"{key} {name}: {refusal.reason}, again at {refusal.retry_at:%H:%M:%S}"
            for key, memory in sorted(self._memories.items())
            for name, refusal in sorted(memory.refusals.items())
        ]
        found += [
            f"outage{scope and ' in namespace '}{scope}: {len(outage.keys)} HyperJobs wait,"
            f" {outage.probe} tries at {outage.until:%H:%M:%S}"
            for scope, outage in sorted(self._outages.items())
            if outage.keys
        ]
        return "; ".join(found) or "none"

    def of(self, key: str, *, uid: str, generation: int) -> Mapping[str, Refusal]:
        """Return the refusals of a HyperJob of this UID and generation, by sub-job."""
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            return {}
        outage = self._outage_of(memory)
        if outage is None:
            return memory.refusals
        retry_at = outage.retry_at(key)
        unjudged = {
            name: Refusal(
                reason=reason,
                message=message,
                retry_at=retry_at,
                gives_back_at=outage.since + _KEPT,
            )
            for name, (reason, message) in memory.unjudged.items()
        }
        return {**memory.refusals, **unjudged}

    def note(
        self,
        key: str,
        name: str,
        *,
        uid: str,
        generation: int,
        reason: str,
        message: str,
    ) -> None:
        """Record a refusal; each further refusal of the same sub-job doubles the wait."""
        memory = self._memory(key, uid, generation)
        memory.unjudged.pop(name, None)
        if not memory.unjudged:
            self._leave(key, memory)
        times = memory.times.get(name, 0)
        wait = min(_LONGEST, _FIRST * 2.0 ** min(times, 32))
        memory.times[name] = times + 1
        memory.refusals[name] = Refusal(
            reason=reason, message=message, retry_at=self._now() + timedelta(seconds=wait)
        )

    def note_outage(
        self,
        key: str,
        name: str,
        *,
        uid: str,
        generation: int,
        reason: str,
        message: str,
        scope: str,
        tried: datetime,
    ) -> None:
        """Record that the API server could not judge a sub-job; the HyperJobs share the wait.

        `scope` is the namespace that the outage concerns, empty for all; `tried` is the time of the
        request. Only the first failure after a wait extends the outage: the requests that were
        under way beside it say nothing new. In a namespace the HyperJobs take turns to try first: a
        full quota may have room for some.
        """
        now = self._now()
        self._drop_old(now)
        memory = self._memory(key, uid, generation)
        if memory.outage not in {None, scope}:
            self._leave(key, memory)
        outage = self._outages.get(scope)
        if outage is None:
            outage = _Outage(now, now + _FIRST_OUTAGE, _FIRST_OUTAGE, now - tried)
            self._outages[scope] = outage
        elif now >= outage.until:
            outage.took = now - tried
            outage.since = outage.since if outage.keys else now
            outage.wait = min(_LONGEST_OUTAGE, 2 * outage.wait)
            outage.until = now + outage.wait
            if scope:
                outage.keys.pop(key, None)
        outage.keys[key] = None
        memory.outage = scope
        memory.refusals.pop(name, None)
        memory.unjudged[name] = (reason, message)

    def is_unjudged(self, key: str) -> bool:
        """Return whether an outage delays a sub-job of a HyperJob now."""
        memory = self._memories.get(key)
        outage = None if memory is None else self._outage_of(memory)
        return outage is not None and self._now() < outage.retry_at(key)

    def forget_all(self) -> None:
        """Drop all refusals and the outages: the component that refused may be another one now."""
        self._memories.clear()
        self._outages.clear()

    def accepted(self, key: str, name: str) -> Sequence[str]:
        """Remove the refusal of a sub-job that the API server has accepted.

        If an outage delayed the sub-job, the outage is over: the result are the HyperJobs that
        waited for its end.
        """
        memory = self._memories.get(key)
        if memory is None:
            return ()
        memory.refusals.pop(name, None)
        memory.times.pop(name, None)
        outage = self._outage_of(memory) if name in memory.unjudged else None
        if outage is None:
            return ()
        outage.until = self._now()
        return self._end(outage)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        memory = self._memories.pop(key, None)
        if memory is not None:
            self._leave(key, memory)

    def _memory(self, key: str, uid: str, generation: int) -> _Memory:
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            self.forget(key)
            memory = self._memories[key] = _Memory(uid, generation)
        return memory

    def _outage_of(self, memory: _Memory) -> _Outage | None:
        return None if memory.outage is None else self._outages.get(memory.outage)

    def _leave(self, key: str, memory: _Memory) -> None:
        """Let a HyperJob leave the outage that delays it, if any."""
        outage = self._outage_of(memory)
        memory.outage = None
        memory.unjudged.clear()
        if outage is not None:
            outage.keys.pop(key, None)

    def _end(self, outage: _Outage) -> list[str]:
        """Let all HyperJobs leave an outage; return their keys."""
        freed = list(outage.keys)
        for key in freed:
            self._leave(key, self._memories[key])
        return freed

    def _drop_old(self, now: datetime) -> None:
        """Drop the outages that ended, or that no HyperJob has met, for some time."""
        for scope, outage in list(self._outages.items()):
            if now > outage.until + _FORGOTTEN:
                self._end(outage)
                del self._outages[scope]


# The pods of a Job change together: a pass for each change would write a status for each.
SETTLE_SECONDS: Final = 0.1
MESSAGE_SECONDS: Final = 5.0
_MESSAGES_PER_SECOND: Final = 20.0

Need = frozenset[tuple[str, int]]


class Unplaced:
    """Keys with the sizes of the sub-jobs that have no place."""

    def __init__(self, add_after: Callable[[str, float], None]) -> None:
        self._add_after = add_after
        self._known: dict[str, tuple[Need, ...]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __str__(self) -> str:
        """Return the keys of the waiting HyperJobs."""
        return ", ".join(sorted(self._known)) or "none"

    def put(self, key: str, *, needs: Iterable[Resources]) -> None:
        """Add a waiting HyperJob; without `needs`, any free room requests a pass of it."""
        self._known[key] = tuple(dict.fromkeys(frozenset(need.items()) for need in needs))

    def drop(self, key: str) -> None:
        """Remove a HyperJob that no longer waits."""
        self._known.pop(key, None)

    def wake(self, room: Resources) -> None:
        """Request a pass of the HyperJobs with a sub-job that fits into a cluster's room."""
        useful: dict[Need, bool] = {}
        for key, needs in self._known.items():
            woken = not needs
            for need in needs:
                if need not in useful:
                    useful[need] = fits(dict(need), room)
                woken = woken or useful[need]
            self._add_after(key, SETTLE_SECONDS if woken else self.message_seconds)

    def refresh(self) -> None:
        """Request a later pass of all HyperJobs: only their messages may have changed."""
        for key in self._known:
            self._add_after(key, self.message_seconds)

    @property
    def message_seconds(self) -> float:
        """Return the least seconds between two status writes for a message; more if more wait."""
        return max(MESSAGE_SECONDS, len(self._known) / _MESSAGES_PER_SECOND)


class ClosedQueues:
    """Follows ClusterResourceBindings of Queues."""

    def __init__(self, informer: Informer, *, changed: Callable[[str], None]) -> None:
        """Call `changed` with the name of a Queue that other clusters than before have closed."""
        self._closed: dict[str, ClosedQueue] = {}
        self._report = changed
        informer.add_handler(self._changed)

    def of(self, hyperjob: HyperJob) -> Mapping[str, ClosedQueue]:
        """Return the queues of a HyperJob that some clusters have closed, by name."""
        if not self._closed:
            return {}
        names = {queue_of(group.template) for group in hyperjob.replicated_jobs}
        return {name: self._closed[name] for name in names if name in self._closed}

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a ClusterResourceBinding; report a Queue that other clusters close now."""
        before, now = (None if each is None else closed_queue(each) for each in (old, new))
        if before == now:
            return
        for closed in _known(before):
            self._closed.pop(closed.name, None)
        for closed in _known(now):
            self._closed[closed.name] = closed
        for name in {closed.name for closed in _known(before, now)}:
            self._report(name)


def _known(*found: ClosedQueue | None) -> Iterable[ClosedQueue]:
    return (each for each in found if each is not None)


WINDOW: Final = timedelta(minutes=10)
"""How long a tombstone counts: longer than pods take to terminate in most templates."""


class Tombstones:
    """The tombstones, from the events of the vcjob informer."""

    def __init__(self, jobs: Informer, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._gone: dict[str, datetime] = {}
        self._followers: set[str] = set()
        jobs.add_handler(self._changed)

    def __str__(self) -> str:
        """Return the names of the deleted vcjobs."""
        return ", ".join(sorted(self._gone)) or "none"

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record a created or deleted vcjob."""
        now = self._now()
        while self._gone and now - self._gone[oldest := next(iter(self._gone))] > WINDOW:
            del self._gone[oldest]
        if kind is EventType.DELETED and old is not None:
            self._followers.discard(_uid(old))
            self._gone.pop(key := key_of(old), None)
            self._gone[key] = now
        elif kind is EventType.ADDED and new is not None and key_of(new) in self._gone:
            self._followers.add(_uid(new))

    def not_applied(self, uid: str) -> None:
        """Record a vcjob that Karmada could not apply: a namesake may still exist in the member."""
        self._followers.add(uid)

    def is_follower(self, uid: str) -> bool:
        """Return whether a vcjob may follow another one of its name on the same cluster."""
        return uid in self._followers


def _uid(vcjob: Object) -> str:
    return string(at(vcjob, "metadata", "uid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All state between passes.

    `unplaced` are the HyperJobs without room for a sub-job, and `written` the times of the last
    status writes by key of the HyperJob. `unwritten` has since when a status waits to be written.
    """

    reservations: Reservations
    admission: Admission
    unplaced: Unplaced
    refusals: Refusals
    tombstones: Tombstones
    closed_queues: ClosedQueues
    written: dict[str, datetime] = field(default_factory=dict)
    unwritten: dict[str, datetime] = field(default_factory=dict)

    def update(self, seen: Observed) -> None:
        """Take over the present objects of a HyperJob, which may change the order of its queue."""
        self.reservations.expire(now=seen.now)
        self.wake_freed(now=seen.now)
        uids = {job.uid for job in seen.jobs.values()}
        for binding in seen.bindings.values():
            if binding.apply_error and binding.job_uid in uids:
                self.tombstones.not_applied(binding.job_uid)
        self.admission.update(seen)

    def forget(self, key: str, remains: Sequence[tuple[Object, Binding]]) -> None:
        """Drop a deleted HyperJob; its vcjobs that a member still runs keep their share."""
        self.unplaced.drop(key)
        self.refusals.forget(key)
        self.written.pop(key, None)
        self.unwritten.pop(key, None)
        self.admission.forget(key, remains)

    def decided(self, key: str, plan: Plan) -> None:
        """Record the sub-jobs that a plan could not place, or that none waits for capacity."""
        if plan.waits_for_capacity:
            self.unplaced.put(key, needs=plan.needs)
        else:
            self.unplaced.drop(key)

    def wake_freed(self, clusters: Iterable[str] = (), *, now: datetime) -> None:
        """Request a pass of the HyperJobs that fit into the free room of clusters.

        These are the clusters whose reservations have ended since the last call, and `clusters`.
        """
        for cluster in (*clusters, *self.reservations.take_freed()):
            self.admission.wake()
            room = self.reservations.room(cluster, now=now)
            if room is not None:
                self.unplaced.wake(room)

    def shrunk(self) -> None:
        """Request a later pass of waiting HyperJobs for their messages: a cluster has less room."""
        self.unplaced.refresh()
        self.admission.wake()

    def __str__(self) -> str:
        """Return a line for each part; the other parts follow from API objects alone."""
        parts = (self.reservations, self.admission, self.unplaced, self.refusals, self.tombstones)
        return "\n".join(f"{type(each).__name__}: {each}" for each in parts)
