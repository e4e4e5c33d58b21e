"""The use of a HyperJob's time, for its goodput, by its phase and reason. Pure."""

from typing import Final, assert_never

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.phases import Phase
from hyperjob_engine.reasons.reason import Reason

_CAPACITY: Final = frozenset(
    {
        Reason.INSUFFICIENT_CAPACITY,
        Reason.EXCEEDS_CLUSTERS,
        Reason.NO_MATCHING_NODE,
        Reason.WAITING_FOR_GANG,
    }
)
_QUEUE: Final = frozenset(
    {
        Reason.WAITING_FOR_QUEUE,
        Reason.QUEUE_NOT_OPEN,
        Reason.INVALID_QUEUE,
        Reason.QUEUE_LIMIT_REACHED,
        Reason.EXCEEDS_QUEUE,
        Reason.DISPATCHER_SILENT,
        Reason.GANG_BACK_OFF,
    }
)
LOST: Final = frozenset({TimeUse.LOST_TO_FAILURES, TimeUse.LOST_TO_PLANNED_STOPS})


def time_use(
    phase: Phase, reason: str, *, before: TimeUse | None, cause: TimeUse | None
) -> TimeUse | None:
    """Return the use of the time from now on; None after the end of the HyperJob.

    `before` is the use up to now. `cause` is the use to which the open stop counts, the stop after
    which the training has not reported a step yet.
    """
    match phase:
        case Phase.PENDING | Phase.QUEUED:
            if reason in _CAPACITY:
                return TimeUse.WAITING_FOR_CAPACITY
            waits = phase is Phase.QUEUED or reason in _QUEUE
            return TimeUse.WAITING_FOR_QUEUE if waits else TimeUse.BLOCKED
        case Phase.STARTING:
            return TimeUse.STARTING
        case Phase.RUNNING:
            return TimeUse.PRODUCTIVE
        case Phase.DEGRADED:
            return TimeUse.DEGRADED
        case Phase.RESTARTING:
            return before if before in LOST else cause or TimeUse.LOST_TO_FAILURES
        case Phase.STOPPING | Phase.SUSPENDED:
            return TimeUse.SUSPENDED
        case Phase.COMPLETED | Phase.FAILED:
            return None
        case _:
            assert_never(phase)
