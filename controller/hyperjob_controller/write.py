"""The step of a pass that writes the status of a HyperJob, with one merge patch.

The plan decides what the status is. The writer only decides how often it writes a status in which
nothing but messages or the training progress changed, and it writes one status for several steps of
a start: for the creation of the sub-jobs and the opening of their gates if both happen within a
second, and later for all that Karmada and Volcano do within five seconds.

The last step of a pass: it records the Events of a plan, each with a line in the log.
"""

import enum
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperjob_controller.caches import Caches
from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.memory import Memory
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
from hyperjob_engine.model.planned import Event
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.diff import Weight, merge_patch, weigh
from hyperjob_engine.status.transitions import STARTS, pass_events

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


log = logging.getLogger(__name__)


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
