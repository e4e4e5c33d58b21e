"""The metrics of passes, from the difference of two statuses and from successful actions.

A pass without a change changes no metric. Pure, except for `Meter`, which sets the metrics.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, count, objects, string, timestamp
from hyperjob_core.kube.client import EventType
from hyperjob_core.telemetry.training import TrainingMetrics
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.planned import Action, CreateChild, OpenGate, Plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.jobs import PLACED

_STARTED: Final = frozenset({Phase.STARTING, Phase.RUNNING, Phase.DEGRADED})

_NO_ROOM: Final = (Reason.INSUFFICIENT_CAPACITY, Reason.EXCEEDS_CLUSTERS)


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
    """Sets the metrics of passes and of the phases of HyperJobs."""

    def __init__(self, metrics: TrainingMetrics) -> None:
        self._metrics = metrics

    def passed(self, decided: Plan) -> None:
        """Count whether a pass found places."""
        found = placed(decided)
        if found is not None:
            self._metrics.placement_tried(placed=found)

    def carried_out(self, hyperjob: HyperJob, done: Iterable[Action], *, now: datetime) -> None:
        """Observe the wait of a gang whose gates were opened."""
        waited = opened_after(hyperjob, done, now=now)
        if waited is not None:
            self._metrics.gang_waited(waited, opened=True)

    def written(self, hyperjob: HyperJob, new: Object, *, now: datetime) -> None:
        """Count the events of a written status."""
        change = change_of(hyperjob, new, now=now)
        if change.queue_wait is not None:
            self._metrics.queue_waited(change.queue_wait)
        if change.given_back_after is not None:
            self._metrics.gang_waited(change.given_back_after, opened=False)
        if change.restarts or change.attempts:
            self._metrics.restarted(counted=change.restarts, attempts=change.attempts)
        if change.finished:
            self._metrics.finished(change.finished)

    def refused(self, reason: str) -> None:
        """Count an object that the API server refused."""
        self._metrics.refused(reason)

    def seen(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Update the phases of HyperJobs and sub-jobs; a handler of the HyperJob informer."""
        after = None if kind is EventType.DELETED else new
        before, phases = _phases(old), _phases(after)
        if before[0] != phases[0]:
            self._metrics.phases_changed(before[0], phases[0])
        if before[1] != phases[1]:
            self._metrics.job_phases_changed(before[1], phases[1])


def _phases(hyperjob: Object | None) -> tuple[list[str], list[str]]:
    """Return the phase of a HyperJob, if there is one, and those of its sub-jobs."""
    if hyperjob is None:
        return [], []
    phase = string(at(hyperjob, "status", "state", "phase")) or str(Phase.PENDING)
    jobs = objects(at(hyperjob, "status", "jobs"))
    return [phase], [string(job.get("phase")) for job in jobs]


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
