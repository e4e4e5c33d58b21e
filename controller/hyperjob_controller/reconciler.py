"""The reconciler. One pass of a HyperJob: update, observe, plan, apply, write, events.

Each step has a file: `update`, `observe`, `hyperjob_engine.plan`, `apply/applier`, `write` and
`events`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

from hyperjob_controller.apply.applier import Applier, FailedAction, Result
from hyperjob_controller.caches import Caches
from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.memory import Memory
from hyperjob_controller.observe import Observer, Updater
from hyperjob_controller.place import Place
from hyperjob_controller.wall import Wall
from hyperjob_controller.write import PRUNED_RECHECK, Events, StatusWriter, Written
from hyperjob_core.kube.resources import split_key
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import DeleteWork, Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import action_events

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
        updater: Updater,
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
        self._updater = updater
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
            self._memory.admission.after_pass(observed, lambda: self._updater.update(key))
        if result.stale or written is Written.STALE:
            return timedelta()
        again = PRUNED_RECHECK if written in {Written.PRUNED, Written.IGNORED} else delay
        waits = [wait for wait in (decided.requeue_after, again) if wait is not None]
        return min(waits, default=None)

    def _decide(self, key: str) -> tuple[Observed, Plan] | None:
        """Make the first three steps of a pass; None for a deleted HyperJob."""
        with self._wall.turn(key, Place.RECONCILE):
            seen = self._updater.update(key)
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
