"""The reconciler. One pass of a HyperJob: update, observe, plan, apply, write, events.

The plan decides what the status is. The writer only decides how often it writes a status in which
nothing but messages or the training progress changed, and it writes one status for several steps of
a start: for the creation of the sub-jobs and the opening of their gates if both happen within a
second, and later for all that Karmada and Volcano do within five seconds.
"""

import asyncio
import enum
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

from hyperjob_controller.apply.applier import Applier, FailedAction, Result
from hyperjob_controller.caches import Caches
from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.memory import Memory
from hyperjob_controller.observe import Observer
from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import Place
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import FIELD_MANAGER, binding_name
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, mapping, objects, string
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import Conflict, NotFound
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.resources import HYPERJOBS, split_key
from hyperjob_core.telemetry.logs import ref
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import DeleteWork, Event, Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.transitions import (
    STARTS,
    Weight,
    action_events,
    merge_patch,
    pass_events,
    weigh,
)

START_SECONDS: Final = 1.0
"""The longest time for which the status of a HyperJob waits for its ResourceBindings."""
STEP_SECONDS: Final = 5.0
"""The longest time for which a step of a sub-job waits for others, or for the next phase."""
PRUNED_RECHECK: Final = timedelta(seconds=5)
"""The time until the next write of a status whose fields the API server has dropped."""

_BEFORE_START: Final = ("", Phase.PENDING, Phase.QUEUED)


class Written(enum.Enum):
    """The result of a write.

    `NOTHING`: there is no status to write, or no HyperJob any more. `PRUNED`: the API server
    dropped fields, since it has an older CRD, which may be replaced at any moment. `IGNORED`: it
    stored no field at all. `STALE`: the HyperJob is not as observed.
    """

    NOTHING = enum.auto()
    STORED = enum.auto()
    PRUNED = enum.auto()
    IGNORED = enum.auto()
    STALE = enum.auto()


class StatusWriter:
    """Writes the statuses of HyperJobs."""

    def __init__(
        self, kube: Kube, caches: Caches, memory: Memory, meter: Meter, *, progress_seconds: float
    ) -> None:
        """`progress_seconds` is the least time between writes for the training progress alone."""
        self._kube = kube
        self._caches = caches
        self._memory = memory
        self._meter = meter
        self._progress_seconds = progress_seconds

    def delay(self, observed: Observed, status: Object | None) -> timedelta | None:
        """Return how long to delay a status: its next change is due, or it has no new facts."""
        key = observed.hyperjob.key
        if status is None:
            return None
        if _awaits_bindings(observed, status):
            return self._left_since_change(observed, START_SECONDS)
        last = self._memory.written.get(key)
        match weigh(observed.hyperjob.status, status):
            case Weight.STEPS:
                return self._left_since_change(observed, STEP_SECONDS)
            case Weight.WORDS if last is not None:
                return _left(last, self._memory.unplaced.message_seconds, observed.now)
            case Weight.PROGRESS if last is not None:
                return _left(last, self._progress_seconds, observed.now)
            case _:
                self._memory.unwritten.pop(key, None)
                return None

    def _left_since_change(self, observed: Observed, seconds: float) -> timedelta | None:
        """Return what is left of some seconds since the first change that is not written."""
        since = self._memory.unwritten.setdefault(observed.hyperjob.key, observed.now)
        return _left(since, seconds, observed.now)

    async def write(self, observed: Observed, status: Object | None) -> Written:
        """Write what has changed in the status; raises KubeError."""
        hyperjob = observed.hyperjob
        if status is None:
            return Written.NOTHING
        patch = merge_patch(hyperjob.status, status)
        if not patch:
            return Written.STORED
        self._caches.expect_status(hyperjob.key, status)
        version = hyperjob.resource_version
        try:
            answer = await patch_status(self._kube, self._caches, hyperjob.key, patch, version)
        except Conflict:
            return Written.STALE
        if answer is None:
            return Written.NOTHING
        stored = mapping(answer.get("status"))
        is_pruned = any(
            value is not None and stored.get(field) != value for field, value in status.items()
        )
        if is_pruned and stored == hyperjob.status:
            return Written.IGNORED
        self._memory.written[hyperjob.key] = observed.now
        self._memory.unwritten.pop(hyperjob.key, None)
        self._meter.written(hyperjob, status, now=observed.now)
        return Written.PRUNED if is_pruned else Written.STORED


async def patch_status(
    kube: Kube, caches: Caches, key: str, patch: Object, version: object
) -> Object | None:
    """Patch the status of a HyperJob of this resourceVersion; None if there is none any more.

    The status counts attempts: Conflict is raised instead of a write over an unread one.
    """
    namespace, name = split_key(key)
    try:
        answer = await kube.patch(
            HYPERJOBS,
            name,
            {"metadata": {"resourceVersion": version}, "status": patch},
            kind=PatchType.MERGE,
            namespace=namespace,
            subresource="status",
            field_manager=FIELD_MANAGER,
        )
    except NotFound:
        return None
    caches.note(HYPERJOBS, answer)
    return answer


def _left(since: datetime, seconds: float, now: datetime) -> timedelta | None:
    """Return what is left of some seconds; None if they are over."""
    wait = since + timedelta(seconds=seconds) - now
    return wait if wait > timedelta() else None


def _awaits_bindings(observed: Observed, status: Object) -> bool:
    """Return whether all sub-jobs have just been created, and Karmada has not bound each.

    The pass after the last ResourceBinding opens the gates, and its status has both changes. A
    status in which a sub-job waits for anything else, or was refused, does not wait.
    """
    if string(at(observed.hyperjob.status, "state", "phase")) not in _BEFORE_START:
        return False
    if at(status, "state", "phase") != Phase.STARTING:
        return False
    if status.get("alternatives") != observed.hyperjob.status.get("alternatives"):
        return False  # no sub-job is created before the status has its alternatives
    jobs = objects(status.get("jobs"))
    if any(job.get("reason") != Reason.DISPATCHING for job in jobs):
        return False
    return any(binding_name(string(job.get("name"))) not in observed.bindings for job in jobs)


class Events:
    """Records Events about HyperJobs."""

    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        self._caches = caches
        self._recorder = recorder
        self._starts: dict[str, tuple[Event, ...]] = {}

    def record_pass(
        self, key: str, decided: Sequence[Event], done: Sequence[Event], *, waits: bool
    ) -> None:
        """Record the Events of a pass: `decided` with its status, `done` with its actions.

        While the status `waits` to be written, Events of starts wait for the phase in it: one Event
        has both.
        """
        done = (*self._starts.pop(key, ()), *done)
        if waits:
            starts = tuple(event for event in done if event.reason in STARTS)
            done = tuple(event for event in done if event.reason not in STARTS)
            if starts:
                self._starts[key] = starts
        self.record(key, pass_events(decided, done))

    def forget(self, key: str) -> None:
        """Drop the waiting Events of a deleted HyperJob."""
        self._starts.pop(key, None)

    def flush(self) -> None:
        """Record all waiting Events: no pass of this process follows."""
        while self._starts:
            self.record(*self._starts.popitem())

    def record(self, key: str, events: Iterable[Event]) -> None:
        """Record the Events of a HyperJob; none if it no longer exists."""
        regarding = self._caches.hyperjob(key)
        if regarding is None:
            return
        for event in events:
            self._recorder.event(regarding, event.type, event.reason, event.action, event.note)
            log.log(
                logging.WARNING if event.type == "Warning" else logging.INFO,
                "HyperJob changed",
                extra={"hyperjob": ref(regarding), "reason": event.reason, "note": event.note},
            )


log = logging.getLogger(__name__)

_FORGOTTEN: Final = timedelta(seconds=30)
_CLEANS: Final = timedelta(minutes=5)
"""How long after its deletion the pods of a HyperJob are looked at."""


class Background(Protocol):
    """A task that reads for later passes: the external splitter, causes of failures, progress."""

    @property
    def place(self) -> Place:
        """Return where its exceptions count."""
        ...

    def planned(self, observed: Observed, decided: Plan) -> None:
        """Take over what the plan of a HyperJob asks for."""
        ...

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        ...


class Reconciler:
    """Reconciles HyperJobs, one pass at a time each."""

    def __init__(
        self,
        caches: Caches,
        memory: Memory,
        *,
        observer: Observer,
        applier: Applier,
        writer: StatusWriter,
        events: Events,
        wall: Wall,
        meter: Meter,
        now: Callable[[], datetime],
        background: Sequence[Background] = (),
    ) -> None:
        self._caches = caches
        self._memory = memory
        self._observer = observer
        self._applier = applier
        self._writer = writer
        self._events = events
        self._wall = wall
        self._meter = meter
        self._now = now
        self._background = background
        # The vcjobs of deleted HyperJobs, and when they were deleted: Karmada may forget a Work.
        self._gone: dict[str, tuple[frozenset[str], datetime]] = {}

    async def reconcile(self, key: str) -> timedelta | None:
        """Make one pass; return the time until the next. Raises KubeError if it must be retried."""
        found = self._decide(key)
        if found is None:
            return await self._clean(key)
        self._gone.pop(key, None)
        observed, decided = found
        self._meter.placed(decided)
        result = await self._apply(observed, decided)
        if result.failures or result.stale:
            self._note(observed, result)
            found = self._decide(key)
            if found is None:
                return None
            observed, decided = found
        self._memory.decided(key, decided)
        for task in self._background:
            with self._wall.around((), task.place):
                task.planned(observed, decided)
        delay = self._writer.delay(observed, decided.status)
        # The plan of a later pass has the Events of a delayed status again.
        written = await self._writer.write(observed, None if delay else decided.status)
        self._observer.release(key)
        reported = decided.events if written in {Written.STORED, Written.PRUNED} else ()
        done = action_events(result.done)
        is_step = delay is not None and key in self._memory.unwritten
        self._events.record_pass(key, reported, done, waits=is_step)
        if written is not Written.STALE and delay is None and observed.verdict is not None:
            self._memory.admission.message_written(key, observed.verdict)
        for failure in result.failures:
            if not failure.is_reported:
                raise failure.error
        # An outage is no failure of the HyperJob: the queue does not let it rest.
        if not result.stale and not self._memory.refusals.is_unjudged(key):
            self._memory.admission.after_pass(observed, lambda: self._observer.update(key))
        if result.stale or written is Written.STALE:
            return timedelta()
        again = PRUNED_RECHECK if written in {Written.PRUNED, Written.IGNORED} else delay
        waits = [wait for wait in (decided.requeue_after, again) if wait is not None]
        return min(waits, default=None)

    def _decide(self, key: str) -> tuple[Observed, Plan] | None:
        """Make the first three steps of a pass; None for a deleted HyperJob."""
        with self._wall.turn(key, Place.RECONCILE):
            seen = self._observer.update(key)
            if seen is None:
                return None
            observed = self._observer.observe(seen)
            return observed, plan(observed)

    async def _apply(self, observed: Observed, decided: Plan) -> Result:
        """Send a plan's requests while its new sub-jobs hold room; record what was accepted."""
        if not decided.actions:
            return Result((), (), stale=False)
        hyperjob, reservations = observed.hyperjob, self._memory.reservations
        with reservations.assumed(decided.actions, namespace=hyperjob.namespace):
            result = await self._applier.apply(hyperjob.namespace, decided.actions)
            # The informer's events may come after the next pass of another HyperJob.
            for action in result.done:
                reservations.update(f"{hyperjob.namespace}/{action.name}", now=observed.now)
        for action in result.done:
            freed = self._memory.refusals.accepted(hyperjob.key, action.name)
            self._memory.admission.rejoin(freed)
        if result.failures or result.stale:
            reservations.let_go(decided.actions)
        self._memory.wake_freed(now=observed.now)
        self._meter.carried_out(hyperjob, result.done, now=observed.now)
        return result

    def _note(self, observed: Observed, result: Result) -> None:
        """Record refusals: the next plan reports them and waits."""
        hyperjob, refusals = observed.hyperjob, self._memory.refusals
        for failure in result.failures:
            _log(hyperjob.key, failure)
            if not failure.is_reported:
                continue
            reason = failure.error.reason or type(failure.error).__name__
            if failure.is_refusal and not failure.is_of_deleted_namespace:
                self._meter.refused(reason)
            note = refusals.note
            if failure.is_outage:
                scope = hyperjob.namespace if failure.is_of_quota else ""
                note = partial(refusals.note_outage, scope=scope, tried=observed.now)
            note(
                hyperjob.key,
                failure.name,
                uid=hyperjob.uid,
                generation=hyperjob.generation,
                reason=reason,
                message=failure.error.message,
            )

    async def _clean(self, key: str) -> timedelta | None:
        """Drop a deleted HyperJob; later delete the Works of it that Karmada has forgotten.

        Karmada can write a Work again while it deletes it: its vcjob would run on for good.
        """
        now, jobs = self._now(), self._observer.last_jobs(key)
        if jobs:
            self._gone[key] = jobs, now
        self._forget(key)
        jobs, since = self._gone.get(key, (frozenset(), now))
        if jobs and now - since < _FORGOTTEN:
            return _FORGOTTEN - (now - since)
        found = self._observer.forgotten(jobs)
        if not found or now - since > _CLEANS:
            self._gone.pop(key, None)
            return None
        await self._delete(split_key(key)[0] or "", found)
        return _FORGOTTEN

    async def sweep(self) -> None:
        """Delete, once, the Works of sub-jobs whose HyperJob was deleted while no process led."""
        await asyncio.sleep(_FORGOTTEN.total_seconds())
        for namespace, found in self._observer.orphans().items():
            await self._delete(namespace, found)

    async def _delete(self, namespace: str, works: Sequence[DeleteWork]) -> None:
        done = await self._applier.apply(namespace, works)
        for action in done.done:
            log.warning("Deleted a Work that Karmada had forgotten", extra={"job": action.name})

    def _forget(self, key: str) -> None:
        self._caches.forget_status(key)
        self._events.forget(key)
        for task in self._background:
            with self._wall.around((), task.place):
                task.forget(key)


def _log(key: str, failure: FailedAction) -> None:
    namespace, name = split_key(key)
    level = logging.INFO if failure.is_of_deleted_namespace else logging.WARNING
    log.log(
        level,
        "An action for a sub-job failed",
        extra={
            "hyperjob": {"namespace": namespace, "name": name},
            "job": {"namespace": namespace, "name": failure.name},
            "error": str(failure.error),
        },
    )
