"""The metrics of passes, from the difference of two statuses and from successful actions.

A pass without a change changes no metric. Pure, except for `Meter`, which sets the metrics.
"""

from collections import Counter as Numbers
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client import Counter, Histogram

from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, count, objects, string, timestamp
from hyperjob_core.kube.client import EventType
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.planned import Action, CreateChild, OpenGate, Plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.jobs import PLACED

_STARTED: Final = frozenset({Phase.STARTING, Phase.RUNNING, Phase.DEGRADED})

_NO_ROOM: Final = (Reason.INSUFFICIENT_CAPACITY, Reason.EXCEEDS_CLUSTERS, Reason.NO_MATCHING_NODE)

_BUCKETS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 10800, 43200, 86400)
_QUEUE_WAIT: Final = Histogram(
    "hyperjob_queue_wait_seconds",
    "Time from the creation of a HyperJob until enough of its sub-jobs are admitted to start",
    ("queue",),
    buckets=_BUCKETS,
    registry=REGISTRY,
)
_GANG_WAIT: Final = Histogram(
    "hyperjob_gang_wait_seconds",
    "Time from the first admitted sub-job until the gang starts (opened) or releases its quota"
    " (gave_back)",
    ("outcome",),
    buckets=_BUCKETS,
    registry=REGISTRY,
)
_PLACEMENTS: Final = Counter(
    "hyperjob_placement_attempts_total",
    "Reconciliations that placed all waiting sub-jobs (placed), or not all (no_room)",
    ("result",),
    registry=REGISTRY,
)
_RESTARTS: Final = Counter(
    "hyperjob_restarts_total", "Restarts that count against maxRestarts", registry=REGISTRY
)
_ATTEMPTS: Final = Counter(
    "hyperjob_job_attempts_total", "Sub-jobs created again, for any reason", registry=REGISTRY
)
_FINISHED: Final = Counter(
    "hyperjob_finished_total", "HyperJobs that ended, by phase", ("phase",), registry=REGISTRY
)
_REFUSALS: Final = Counter(
    "hyperjob_refusals_total",
    "Objects of sub-jobs that the API server refused, by reason",
    ("reason",),
    registry=REGISTRY,
)
# An alert needs a series before its first count.
for _family, _values in (
    (_QUEUE_WAIT, ("default",)),
    (_GANG_WAIT, ("opened", "gave_back")),
    (_PLACEMENTS, ("placed", "no_room")),
    (_FINISHED, (Phase.COMPLETED, Phase.FAILED)),
    (_REFUSALS, ("BadRequest", "Forbidden", "Invalid", "NotFound")),
):
    for _value in _values:
        _family.labels(_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """The events of one write of a status; times in seconds, None if there is no such event."""

    queue_wait: float | None = None
    given_back_after: float | None = None
    restarts: int = 0
    attempts: int = 0
    finished: str = ""


def change_of(hyperjob: HyperJob, new: Object, *, now: datetime) -> StatusChange:
    """Return the difference between the old status of a HyperJob and the written one."""
    old = hyperjob.status
    phase, before = (string(at(status, "state", "phase")) for status in (new, old))
    started = not old.get("startTime") and phase in _STARTED
    gave_back = count(at(new, "gang", "attempts")) > count(at(old, "gang", "attempts"))
    earlier = {job.get("name"): count(job.get("attempt")) for job in objects(old.get("jobs"))}
    attempts = (
        count(job.get("attempt")) - earlier.get(job.get("name"), 0)
        for job in objects(new.get("jobs"))
    )
    ended = phase != before and phase in set(Phase) and Phase(phase).is_terminal
    return StatusChange(
        queue_wait=_since(hyperjob.created, now) if started else None,
        given_back_after=_waited(hyperjob, now=now) if gave_back else None,
        restarts=max(0, count(new.get("restarts")) - count(old.get("restarts"))),
        attempts=sum(max(0, more) for more in attempts),
        finished=phase if ended else "",
    )


def opened_after(hyperjob: HyperJob, done: Iterable[Action], *, now: datetime) -> float | None:
    """Return the time from the first admission to the opening of a gang's gates; None if none."""
    if not any(isinstance(action, OpenGate) for action in done):
        return None
    return _waited(hyperjob, now=now)


def placed(decided: Plan) -> bool | None:
    """Return whether a pass placed all missing sub-jobs; None if it had none to place."""
    if decided.waits_for_capacity or at(decided.status, "state", "reason") in _NO_ROOM:
        return False
    made = (action for action in decided.actions if isinstance(action, CreateChild))
    return True if any(action.job is not None for action in made) else None


class Meter:
    """Counts passes, and the HyperJobs and sub-jobs of each phase."""

    def __init__(self) -> None:
        self.phases: Numbers[str] = Numbers({str(phase): 0 for phase in Phase})
        self.job_phases: Numbers[str] = Numbers()
        self.reporting = 0

    def passed(self, decided: Plan) -> None:
        """Count whether a pass found places."""
        found = placed(decided)
        if found is not None:
            _PLACEMENTS.labels("placed" if found else "no_room").inc()

    def carried_out(self, hyperjob: HyperJob, done: Iterable[Action], *, now: datetime) -> None:
        """Observe the wait of a gang whose gates were opened."""
        waited = opened_after(hyperjob, done, now=now)
        if waited is not None:
            _GANG_WAIT.labels("opened").observe(waited)

    def written(self, hyperjob: HyperJob, new: Object, *, now: datetime) -> None:
        """Count the events of a written status."""
        change = change_of(hyperjob, new, now=now)
        if change.queue_wait is not None:
            _QUEUE_WAIT.labels(string(new.get("queue"))).observe(change.queue_wait)
        if change.given_back_after is not None:
            _GANG_WAIT.labels("gave_back").observe(change.given_back_after)
        _RESTARTS.inc(change.restarts)
        _ATTEMPTS.inc(change.attempts)
        if change.finished:
            _FINISHED.labels(change.finished).inc()

    def refused(self, reason: str) -> None:
        """Count an object that the API server refused."""
        _REFUSALS.labels(reason).inc()

    def seen(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Update the phases of HyperJobs and sub-jobs; a handler of the HyperJob informer."""
        after = None if kind is EventType.DELETED else new
        before, phases = _phases(old), _phases(after)
        self.reporting += _reports(after) - _reports(old)
        if before[0] != phases[0]:
            self.phases.subtract(before[0])
            self.phases.update(phases[0])
        if before[1] != phases[1]:
            self.job_phases.subtract(before[1])
            self.job_phases.update(phases[1])


def _phases(hyperjob: Object | None) -> tuple[list[str], list[str]]:
    """Return the phase of a HyperJob, if there is one, and those of its sub-jobs."""
    if hyperjob is None:
        return [], []
    phase = string(at(hyperjob, "status", "state", "phase")) or str(Phase.PENDING)
    jobs = objects(at(hyperjob, "status", "jobs"))
    return [phase], [string(job.get("phase")) for job in jobs]


def _reports(hyperjob: Object | None) -> bool:
    return bool(at(hyperjob, "status", "training"))


def _waited(hyperjob: HyperJob, *, now: datetime) -> float:
    """Return the time since the first present sub-job was admitted; 0 if none was recorded."""
    admitted = (
        record.last_transition_time
        for record in hyperjob.records.values()
        if record.phase == PLACED and record.last_transition_time
    )
    return _since(min(admitted, default=""), now)


def _since(text: str, now: datetime) -> float:
    moment = timestamp(text)
    return max(0.0, (now - moment).total_seconds()) if moment is not None else 0.0
