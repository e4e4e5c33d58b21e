"""The reconciler. One pass of a HyperJob: learn, observe, plan, apply, one status write, Events.

The plan decides about the actions and the status. The reconciler only decides how often it writes a
status in which nothing but messages or the training progress changed.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from hyperjob_controller.admission.line import Line
from hyperjob_controller.apply.applier import Applier, FailedAction, Result
from hyperjob_controller.caches.informers import Caches
from hyperjob_controller.causes.reader import CauseReader
from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.learn import Learner
from hyperjob_controller.memory.refusals import Refusals
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.splitting.client import Splitter
from hyperjob_controller.training.reader import Reader
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import FIELD_MANAGER
from hyperjob_core.api.wire import mapping
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import Conflict, NotFound
from hyperjob_core.kube.events import EventKind
from hyperjob_core.kube.resources import HYPERJOBS, split_key
from hyperjob_core.telemetry.logs import ref
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import Event, Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.status.diff import Weight, merge_patch, weigh
from hyperjob_engine.status.transitions import action_events

log = logging.getLogger(__name__)

PRUNED_RECHECK: Final = timedelta(seconds=5)
"""The time until the next write of a status whose fields the API server has dropped."""


class Recorder(Protocol):
    """The method of an EventRecorder that the reconciler calls."""

    def event(self, obj: Object, type: EventKind, reason: str, action: str, note: str) -> None:  # noqa: A002
        """Record an Event about an object."""
        ...


class Reconciler:
    """Reconciles HyperJobs, one pass at a time each."""

    def __init__(
        self,
        kube: Kube,
        caches: Caches,
        learner: Learner,
        applier: Applier,
        line: Line,
        *,
        reservations: Reservations,
        refusals: Refusals,
        recorder: Recorder,
        meter: Meter,
        splitter: Splitter | None = None,
        cause_reader: CauseReader | None = None,
        reader: Reader | None = None,
        progress_seconds: float = 30.0,
    ) -> None:
        """`progress_seconds` is the least time between writes for the training progress alone."""
        self._kube = kube
        self._caches = caches
        self._learner = learner
        self._applier = applier
        self._line = line
        self._reservations = reservations
        self._refusals = refusals
        self._recorder = recorder
        self._meter = meter
        self._splitter = splitter
        self._cause_reader = cause_reader
        self._reader = reader
        self._progress_seconds = progress_seconds
        self._worded: dict[str, datetime] = {}

    async def reconcile(self, key: str) -> timedelta | None:
        """Make one pass; return the time until the next. Raises KubeError if it must be retried."""
        observed = self._learner.learn(key)
        if observed is None:
            self._forget(key)
            return None
        if self._reader is not None:
            self._reader.observe(observed)
        decided = plan(observed)
        self._meter.passed(decided)
        result = await self._carry_out(observed, decided)
        if result.failures or result.stale:
            self._note(key, observed, result)
            seen = self._learner.learn(key)
            if seen is None:
                return None
            observed, decided = seen, plan(seen)
        self._line.decided(observed, decided)
        put_off = self._puts_off(key, observed, decided)
        if put_off is not None:
            # Only messages or progress would change: such a plan has no action and no Event.
            decided = replace(decided, status=None, requeue_after=_sooner(decided, put_off))
        if decided.questions and self._splitter is not None:
            self._splitter.ask(key, decided.questions)
        if decided.failed and self._cause_reader is not None:
            self._cause_reader.ask(key, decided.failed)
        written, lost = await self._write_status(key, observed, decided)
        if lost:
            decided = replace(decided, requeue_after=_sooner(decided, PRUNED_RECHECK))
        if written and put_off is None:
            self._line.status_written(observed)
        self._record(key, action_events(result.done))
        retry = next((item.error for item in result.failures if not item.is_refusal), None)
        if retry is not None:
            raise retry
        if not result.stale:
            self._line.passed(observed, lambda: self._learner.take_in(key))
        return timedelta() if result.stale or not written else decided.requeue_after

    async def _carry_out(self, observed: Observed, decided: Plan) -> Result:
        if not decided.actions:
            return Result((), (), stale=False)
        hyperjob = observed.hyperjob
        with self._reservations.assumed(decided.actions, namespace=observed.hyperjob.namespace):
            result = await self._applier.apply(hyperjob.namespace, decided.actions)
            # The informer's events may come after the next pass of another HyperJob.
            for action in result.done:
                self._reservations.update(f"{hyperjob.namespace}/{action.name}", now=observed.now)
        if result.failures or result.stale:
            self._reservations.let_go(decided.actions)
        self._line.freed(self._reservations.take_freed())
        self._meter.carried_out(hyperjob, result.done, now=observed.now)
        return result

    def _puts_off(self, key: str, observed: Observed, decided: Plan) -> timedelta | None:
        """Return how long to delay a status in which only messages or progress changed, if any."""
        old, last = observed.hyperjob.status, self._worded.get(key)
        if decided.status is None or last is None:
            return None
        match weigh(old, decided.status):
            case Weight.WORDS:
                seconds = self._line.message_seconds
            case Weight.PROGRESS:
                seconds = self._progress_seconds
            case _:
                return None
        wait = last + timedelta(seconds=seconds) - observed.now
        return wait if wait > timedelta() else None

    async def _write_status(self, key: str, observed: Observed, decided: Plan) -> tuple[bool, bool]:
        """Write the changed status.

        Return whether the HyperJob was as observed, and whether the API server dropped fields
        because it has an older CRD, which may be replaced at any moment.
        """
        lost = False
        if decided.status is None:
            return True, lost
        patch = merge_patch(observed.hyperjob.status, decided.status)
        if patch:
            namespace, name = split_key(key)
            # The status counts attempts: the resourceVersion prevents a write over an unread one.
            version = observed.hyperjob.resource_version
            body = {"metadata": {"resourceVersion": version}, "status": patch}
            self._caches.expect_status(key, decided.status)
            try:
                answer = await self._kube.patch(
                    HYPERJOBS,
                    name,
                    body,
                    kind=PatchType.MERGE,
                    namespace=namespace,
                    subresource="status",
                    field_manager=FIELD_MANAGER,
                )
            except NotFound:
                return True, lost
            except Conflict:
                return False, lost
            self._caches.note(HYPERJOBS, answer)
            stored = mapping(answer.get("status"))
            lost = any(
                value is not None and stored.get(name) != value
                for name, value in decided.status.items()
            )
            if lost and stored == observed.hyperjob.status:
                return True, lost  # the API server stored no field: there are no Events either
            self._worded[key] = observed.now
            self._meter.written(observed.hyperjob, decided.status, now=observed.now)
        self._record(key, decided.events)
        return True, lost

    def _note(self, key: str, observed: Observed, result: Result) -> None:
        """Record refusals: the next plan reports them and waits."""
        hyperjob = observed.hyperjob
        for failure in result.failures:
            _log(key, failure)
            if failure.is_refusal:
                self._meter.refused(failure.error.reason or type(failure.error).__name__)
                self._refusals.note(
                    key,
                    failure.name,
                    uid=hyperjob.uid,
                    generation=hyperjob.generation,
                    reason=failure.error.reason or type(failure.error).__name__,
                    message=failure.error.message,
                    now=observed.now,
                )
        for action in result.done:
            self._refusals.clear(key, action.name)

    def _record(self, key: str, events: Iterable[Event]) -> None:
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

    def _forget(self, key: str) -> None:
        self._refusals.forget(key)
        self._caches.forget_status(key)
        self._worded.pop(key, None)
        if self._splitter is not None:
            self._splitter.forget(key)
        if self._cause_reader is not None:
            self._cause_reader.forget(key)
        if self._reader is not None:
            self._reader.forget(key)


def _sooner(decided: Plan, wait: timedelta) -> timedelta:
    return wait if decided.requeue_after is None else min(wait, decided.requeue_after)


def _log(key: str, failure: FailedAction) -> None:
    namespace, name = split_key(key)
    log.warning(
        "An action for a sub-job failed",
        extra={
            "hyperjob": {"namespace": namespace, "name": name},
            "job": {"namespace": namespace, "name": failure.name},
            "error": str(failure.error),
        },
    )
