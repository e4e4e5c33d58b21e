"""The conditions of a HyperJob, in the form of the Kubernetes API conventions.

Completed and Failed have the messages of the Go controller, and exist only after every sub-job has
ended. The others always exist and follow from the phase; docs/lifecycle.md has the table. A
condition changes with its status or its reason. Conditions of other components stay.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    CONDITION_ADMITTED,
    CONDITION_COMPLETED,
    CONDITION_DEGRADED,
    CONDITION_FAILED,
    CONDITION_QUOTA_RESERVED,
    CONDITION_RECONCILING,
    CONDITION_RUNNING,
    CONDITION_STALLED,
    CONDITION_SUSPENDED,
)
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import objects, string
from hyperjob_engine.lifecycle.decisions import End
from hyperjob_engine.reasons.reason import NEVER_RUNS
from hyperjob_engine.status.jobs import JobState
from hyperjob_engine.status.phase import State

TRUE_IN: Final[Mapping[str, Collection[Phase]]] = {
    CONDITION_QUOTA_RESERVED: {Phase.STARTING, Phase.RUNNING, Phase.DEGRADED, Phase.STOPPING},
    CONDITION_ADMITTED: {Phase.STARTING, Phase.RUNNING, Phase.DEGRADED},
    CONDITION_RUNNING: {Phase.RUNNING},
    CONDITION_SUSPENDED: {Phase.SUSPENDED},
    CONDITION_DEGRADED: {Phase.DEGRADED},
    CONDITION_RECONCILING: set(Phase)
    - {Phase.RUNNING, Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED},
    CONDITION_STALLED: {Phase.FAILED},
}
"""The phases in which each condition is True, in the order of the conditions.

Admitted becomes True within Starting. A HyperJob that never runs on the present clusters and Queues
is Stalled.
"""
_STEPS: Final = frozenset({CONDITION_QUOTA_RESERVED, CONDITION_ADMITTED, CONDITION_RUNNING})
_WHY: Final = "status.state.message says why"
_MESSAGES: Final[Mapping[str, tuple[str, str]]] = {
    CONDITION_QUOTA_RESERVED: (
        f"Its queue holds no share for the sub-jobs that must run together; {_WHY}",
        "Its queue holds the share of the sub-jobs that must run together",
    ),
    CONDITION_ADMITTED: (
        f"Too few sub-jobs may be delivered to their clusters; {_WHY}",
        "Karmada delivers the sub-jobs that must run together to their clusters",
    ),
    CONDITION_RUNNING: (
        f"Fewer sub-jobs run than must run together; {_WHY}",
        "The sub-jobs that must run together run or have completed",
    ),
    CONDITION_SUSPENDED: (
        "The HyperJob is not suspended, or pods of it are left",
        "The HyperJob is suspended, and no pod of it is left",
    ),
    CONDITION_DEGRADED: (
        "The HyperJob has what it needs, or has not run yet",
        f"Sub-jobs are missing or cannot train on; {_WHY}",
    ),
    CONDITION_RECONCILING: (
        "The controller has nothing more to do until something changes",
        f"The HyperJob is not yet what its spec asks for; {_WHY}",
    ),
    CONDITION_STALLED: (
        "Nothing keeps the HyperJob from going on for good",
        f"The HyperJob has failed, or never runs as things are; {_WHY}",
    ),
}
"""The messages where the status is False and True: the numbers of a state would renew them."""


def conditions_of(
    old: Object, state: State, *, dispatched: bool, generation: int, now: str
) -> list[Object]:
    """Return the conditions of a HyperJob, those of other components first.

    `old` is the stored status. `dispatched`: Karmada may deliver the sub-jobs that must run
    together.
    """
    before = {string(each.get("type")): each for each in objects(old.get("conditions"))}
    ours = {*TRUE_IN, CONDITION_COMPLETED, CONDITION_FAILED}
    others = [each for kind, each in before.items() if kind not in ours]
    found = [
        _since(before.get(string(each["type"]), {}), each, now)
        for each in _of_phase(state, dispatched=dispatched, generation=generation)
    ]
    return [*others, *found]


def end_condition(
    old: Object, jobs: Sequence[JobState], end: End, *, generation: int, now: str
) -> Object:
    """Return the condition of an end; without a cause, the phases of the sub-jobs explain it."""
    kind = CONDITION_COMPLETED if end.completed else CONDITION_FAILED
    phases = [job.job_phase for job in jobs]
    completed = phases.count(JobPhase.COMPLETED)
    if end.why:
        reason, message = end.reason, end.why
    elif end.completed:
        reason, message = "AllChildVCJobsCompleted", f"All {completed} child vcJobs completed"
    else:
        reason = "SomeChildVCJobsUnsuccessful"
        message = (
            f"HyperJob failed: {completed} completed, {phases.count(JobPhase.FAILED)} failed,"
            f" {phases.count(JobPhase.ABORTED)} aborted, {phases.count(JobPhase.TERMINATED)}"
            " terminated"
        )
    before = (each for each in objects(old.get("conditions")) if each.get("type") == kind)
    new = _condition(kind, reason, message, true=True, generation=generation)
    return _since(next(before, {}), new, now)


def _of_phase(state: State, *, dispatched: bool, generation: int) -> Iterator[Object]:
    """Yield the conditions that a state has, without their times."""
    phase = state.phase
    never = state.reason in NEVER_RUNS and not phase.is_terminal
    for kind, phases in TRUE_IN.items():
        true = phase in phases and (kind != CONDITION_RECONCILING or not never)
        if kind == CONDITION_ADMITTED and phase is Phase.STARTING:
            true = dispatched
        if kind == CONDITION_STALLED and never:
            true = True
        explains = true != (kind in _STEPS) or kind == CONDITION_RUNNING
        reason = state.reason if explains else kind if true else str(phase)
        message = _MESSAGES[kind][true]
        yield _condition(kind, reason or phase, message, true=true, generation=generation)


def _condition(kind: str, reason: str, message: str, *, true: bool, generation: int) -> Object:
    return {
        "type": kind,
        "status": "True" if true else "False",
        "observedGeneration": generation,
        "reason": str(reason),
        "message": message,
    }


def _since(before: Object, new: Object, now: str) -> Object:
    """Return a condition with its time, which an equal status keeps."""
    same = before.get("status") == new["status"]
    return new | {"lastTransitionTime": (same and string(before.get("lastTransitionTime"))) or now}
