"""The phase, reason and message of a HyperJob, and its conditions.

The first rule of the phase that applies decides; each rule is one line of the table in
docs/lifecycle.md.

Conditions have the form of the Kubernetes API conventions. Completed and Failed have the messages
of the Go controller, and exist only after every sub-job has ended. The others always exist and
follow from the phase; docs/lifecycle.md has the table. A condition changes with its status or its
reason. Conditions of other components stay.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from hyperjob_core.api.training import StallStatus
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.text import alike, listed, shortened
from hyperjob_engine.lifecycle.decisions import End
from hyperjob_engine.lifecycle.finished import trainers
from hyperjob_engine.lifecycle.records import UNPLACED
from hyperjob_engine.model.observed import Observed, QueueVerdict
from hyperjob_engine.placement.place import NEVER, TOO_LARGE
from hyperjob_engine.reasons.pods import follows
from hyperjob_engine.reasons.reason import NEVER_RUNS, Reason
from hyperjob_engine.status.jobs import QUEUED, STUCK, JobState, Outlooks

_NAMES_SHOWN: Final = 3
_MESSAGE_LIMIT: Final = 1024
TRAINS: Final = frozenset({Phase.RUNNING, Phase.DEGRADED})
STARTED: Final = TRAINS | {Phase.STARTING}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Phase, reason and message of a HyperJob."""

    phase: Phase
    reason: str
    message: str


def state_of(
    observed: Observed,
    jobs: Sequence[JobState],
    outlooks: Outlooks,
    *,
    stall: StallStatus | None = None,
    slow: str = "",
) -> State:
    """Return the state from all sub-jobs; `slow` is what to say of a slow training.

    The first rule that applies decides. The order is: the end, a suspension, sub-jobs that run and
    cannot train, enough running sub-jobs, a quorum, restarts, and the loss of sub-jobs after the
    HyperJob was Running. Before its first run the phase is that of the earliest step that too few
    sub-jobs have passed: a place, the queue, the start.
    """
    total, minimum, quorum = len(jobs), outlooks.minimum, observed.hyperjob.quorum
    previous = string(at(observed.hyperjob.status, "state", "phase"))
    if quorum is not None and previous in TRAINS:  # the others train before it joins
        able = total - sum(job.never_ran for job in jobs)
        minimum = min(minimum, max(quorum, able))
    ready = sum(job.is_ready for job in jobs)
    failed = [job for job in jobs if job.job_phase.is_failed]
    if outlooks.end is not None:
        return _end_state(jobs, failed, outlooks.end)
    if observed.hyperjob.suspend:
        return _suspended(jobs, outlooks.late)
    stuck = [job for job in jobs if job.is_ready and not job.can_train]
    if ready >= minimum > ready - len(stuck):
        text = f"{ready - len(stuck)} of {minimum} needed sub-jobs train; {_each(stuck)}"
        return _state(Phase.DEGRADED, min(stuck, key=_urgency).reason, text)
    if ready >= minimum:
        text = _running(jobs, ready, total)
        if stall is not None and not _doubt(jobs):
            return _state(Phase.RUNNING, Reason.NO_PROGRESS, f"{text}; {stall.message}")
        if slow and not _doubt(jobs):
            return _state(Phase.RUNNING, Reason.SLOW_PROGRESS, f"{text}; {slow}")
        return _state(Phase.RUNNING, _doubt(jobs) or Reason.JOBS_RUNNING, text)
    if quorum is not None:
        groups = trainers(observed.hyperjob)
        training = [job for job in jobs if job.replicated_job in groups]
        able = sum(job.is_ready for job in training)
        if able and (previous in TRAINS or (previous == Phase.RESTARTING and able >= quorum)):
            return _with_quorum(jobs, failed, (able, len(training)), quorum)
    restarting = [job for job in jobs if job.phase == UNPLACED and job.reason == Reason.RESTARTING]
    if restarting:
        text = f"{ready} of {minimum} needed sub-jobs run; {_each(restarting)}"
        return _state(Phase.RESTARTING, Reason.RESTARTING, text)
    fewer = previous == Phase.RUNNING and any(not job.is_ready and not job.is_next for job in jobs)
    if failed or fewer or previous == Phase.DEGRADED:
        return _degraded(jobs, failed, ready, minimum)
    unplaced = [job for job in jobs if job.phase == UNPLACED]
    if total - len(unplaced) < minimum:
        return _pending(unplaced, outlooks, observed.verdict)
    queued = [job for job in jobs if job.phase == QUEUED]
    admitted = total - len(unplaced) - len(queued)
    if admitted < minimum:
        return _queued(queued, admitted, minimum=outlooks.minimum, verdict=observed.verdict)
    # Fewer are ready than the `minimum` that is admitted: at least one sub-job waits.
    waiting = [job for job in jobs if not job.is_ready and job.phase not in (UNPLACED, QUEUED)]
    first = min(waiting, key=_urgency)
    text = f"{ready} of {minimum} needed sub-jobs run; {_each(waiting)}"
    return _state(Phase.STARTING, first.reason or Reason.DISPATCHING, text)


def _end_state(jobs: Sequence[JobState], failed: Sequence[JobState], end: End) -> State:
    """Return the state of an ended HyperJob; without a cause its sub-jobs explain the end."""
    if end.why:
        phase = Phase.COMPLETED if end.completed else Phase.FAILED
        ran = [job for job in failed if job.cluster]
        if end.reason is Reason.DEPENDENCY_FAILED and ran:
            return _state(phase, end.reason, f"{end.why}: {_each(ran)}")
        return _state(phase, end.reason, end.why)
    if end.completed:
        return _state(
            Phase.COMPLETED,
            Reason.JOBS_COMPLETED,
            "; ".join([f"{_sub_jobs(jobs)} completed on {_cluster_names(jobs)}", *_told(jobs)]),
        )
    aborted = all(job.job_phase is JobPhase.ABORTED for job in failed)
    reason = Reason.JOBS_ABORTED if aborted else Reason.JOBS_FAILED
    text = f"{len(failed)} of {_sub_jobs(jobs)} did not complete: {_each(failed)}"
    return _state(Phase.FAILED, reason, text)


def _with_quorum(
    jobs: Sequence[JobState], failed: Sequence[JobState], trains: tuple[int, int], quorum: int
) -> State:
    """Return the state of a HyperJob that trains, or waits, with fewer sub-jobs than it needs.

    `trains` are how many of the sub-jobs that train are ready, and how many there are.
    """
    ready, total = trains
    missing = [*failed, *(job for job in jobs if not job.is_terminal and not _is_well(job))]
    verb = "the training goes on" if ready >= quorum else "the training waits"
    text = f"{ready} of {total} sub-jobs run or completed, quorum is {quorum}: {verb}"
    reason = Reason.QUORUM_MET if ready >= quorum else Reason.QUORUM_NOT_MET
    return _state(Phase.DEGRADED, reason, f"{text}; {_each(missing)}")


def _degraded(
    jobs: Sequence[JobState], failed: Sequence[JobState], ready: int, minimum: int
) -> State:
    """Return the state of a HyperJob that has run and now lacks sub-jobs that it needs.

    It has lost none of them if they are all new: then its spec has more `replicas` than before.
    """
    missing = [*failed, *(job for job in jobs if not job.is_ready and not job.is_terminal)]
    text = f"{ready} sub-jobs run or completed, {minimum} are needed: {_each(missing)}"
    reason = Reason.JOBS_FAILED if failed else Reason.MIN_AVAILABLE_NOT_MET
    if missing and all(job.never_ran for job in missing):
        reason, text = Reason.RESIZED, f"grows to {_sub_jobs(jobs)}: {text}"
    return _state(Phase.DEGRADED, reason, text)


def _suspended(jobs: Sequence[JobState], late: str) -> State:
    """Return the state of a suspended HyperJob; `late`: its deadline suspended it."""
    ended = [job for job in jobs if job.is_terminal]
    left = [job.name for job in jobs if job.is_left]
    text = f"suspended with {len(ended)} of {_sub_jobs(jobs)} ended"
    if late:
        text = f"{late}; {len(ended)} of {_sub_jobs(jobs)} ended before"
    if left:
        text = f"{text}; pods may be left of {listed(left, shown=_NAMES_SHOWN)}"
    reason = Reason.DEADLINE_EXCEEDED if late else Reason.SUSPENDED
    return _state(Phase.STOPPING if left or late else Phase.SUSPENDED, reason, text)


def _pending(
    unplaced: Sequence[JobState], outlooks: Outlooks, verdict: QueueVerdict | None
) -> State:
    """Return the state of a HyperJob with too few placed sub-jobs.

    Sub-jobs that are blocked by something other than room come first: room would not help them.
    """
    room = (Reason.INSUFFICIENT_CAPACITY, Reason.WAITING_FOR_GANG)
    blocked = [job for job in unplaced if job.reason not in room]
    if blocked:
        return _state(Phase.PENDING, blocked[0].reason, _each(blocked))
    if verdict is not None and verdict.wait is not None:
        return _state(Phase.PENDING, verdict.reason, _left(unplaced) + verdict.wait.message)
    short = [job for job in unplaced if job.reason != Reason.WAITING_FOR_GANG] or unplaced
    text = _each(short)
    if outlooks.needed > 1:
        text = (
            f"{outlooks.needed} sub-jobs must be placed together, there is room for"
            f" {outlooks.room_for}{NEVER if outlooks.never else ''}: {text}"
        )
    elif outlooks.never:
        text = f"{TOO_LARGE}{text}"
    reason = Reason.EXCEEDS_CLUSTERS if outlooks.never else Reason.INSUFFICIENT_CAPACITY
    return _state(Phase.PENDING, reason, _left(short) + text)


def _queued(
    queued: Sequence[JobState], admitted: int, *, minimum: int, verdict: QueueVerdict | None
) -> State:
    """Return the state of a HyperJob with too few admitted sub-jobs; `queued` are the others.

    The verdict of the controller's own queue engine explains it, else Volcano Global's behaviour.
    """
    if verdict is not None and verdict.wait is not None:
        return _state(Phase.QUEUED, verdict.reason, _left(queued) + verdict.wait.message)
    for reason in (
        Reason.INVALID_QUEUE,
        Reason.QUEUE_NOT_OPEN,
        Reason.DISPATCHER_SILENT,
        Reason.INSUFFICIENT_CAPACITY,
    ):
        concerned = [job for job in queued if job.reason == reason]
        if concerned:
            return _state(Phase.QUEUED, reason, _each(concerned))
    queues = listed(sorted({job.queue for job in queued}))
    text = f"{admitted} of {minimum} needed sub-jobs are admitted; waits for queue {queues}"
    return _state(Phase.QUEUED, Reason.WAITING_FOR_QUEUE, text)


def _left(jobs: Iterable[JobState]) -> str:
    """Return why one of the sub-jobs left its last cluster, to begin a message; empty if none."""
    return next((job.left for job in jobs if job.left), "")


def _running(jobs: Sequence[JobState], ready: int, total: int) -> str:
    """Return how many sub-jobs run where, and those that do not run, may not, or wait to grow."""
    running = [job for job in jobs if job.is_ready and not job.is_terminal]
    known = ", as last reported" if _doubt(jobs) else ""
    text = (
        f"{ready} of {total} sub-jobs run or completed, on {_cluster_names(running or jobs)}{known}"
    )
    whole = [job for job in jobs if _is_well(job) and job.can_train and not job.is_part]
    settled = {job.name for job in whole if job.reason != Reason.WAITING_FOR_QUEUE}
    rest = [job for job in jobs if job.name not in settled]
    return f"{text}; {_each(rest)}" if rest else text


def _told(jobs: Sequence[JobState]) -> Iterator[str]:
    """Yield what completed sub-jobs say of pods that failed."""
    told = [job for job in jobs if job.job_phase is JobPhase.COMPLETED and job.message]
    if told:
        yield _each(told)


def _doubt(jobs: Iterable[JobState]) -> str:
    """Return the reason why a running sub-job may not run; empty if all are known to run."""
    return next((job.reason for job in jobs if job.is_ready and not _is_well(job)), "")


def _is_well(job: JobState) -> bool:
    """Return whether a sub-job has completed, or runs on a cluster that reports it."""
    return job.is_ready and (job.is_terminal or job.reason != Reason.CLUSTER_NOT_READY)


def _urgency(job: JobState) -> tuple[int, bool, str]:
    """Return a sort key: sub-jobs that need a person's help come before those that need time.

    A failure that another one caused comes after its cause.
    """
    later = job.failure is not None and follows(job.failure)
    need_help = (
        Reason.APPLY_FAILED,
        Reason.REFUSED_BY_CLUSTER,
        Reason.SUSPENDED_BY_POLICY,
        Reason.NOTHING_REPORTED,
        Reason.PODS_BLOCKED,
        *STUCK,
    )
    patient = (Reason.PODS_PENDING, Reason.WAITING_FOR_GANG, Reason.DISPATCHING)
    if job.reason in need_help:
        return 0, later, job.name
    patience = 2 + patient.index(Reason(job.reason)) if job.reason in patient else 1
    return patience, later, job.name


def _each(jobs: Sequence[JobState]) -> str:
    """Return the first few sub-jobs with phase and message; equal messages appear once."""
    shown = sorted(jobs, key=_urgency)[:_NAMES_SHOWN]
    restarting = [job for job in shown if job.phase == UNPLACED and job.reason == Reason.RESTARTING]
    texts = list(alike((job.name, _predicate(job)) for job in shown if job not in restarting))
    texts += _recreated(restarting)
    hidden = len(jobs) - len(shown)
    return "; ".join([*texts, *([f"and {hidden} more"] if hidden else [])])


def _recreated(jobs: Sequence[JobState]) -> list[str]:
    """Return why the controller recreates sub-jobs; an equal cause appears once, with all names."""
    names: dict[str, list[str]] = {}
    for job in jobs:
        again = f"; starts again at {job.starts_again}" if job.starts_again else ""
        names.setdefault(f"{job.message}{again}", []).append(job.name)
    return [
        text if text.split(" ", 1)[0] in each else f"{listed(each)}: {text}"
        for text, each in names.items()
    ]


def _predicate(job: JobState) -> str:
    """Return the phase, the cluster and the message of a sub-job, to follow its name."""
    if job.phase == UNPLACED:
        return job.said or "waits for a place"
    where = f" on {job.cluster}" if job.cluster else ""
    return f"is {job.phase}{where}" + (f": {job.message}" if job.message else "")


def _cluster_names(jobs: Iterable[JobState]) -> str:
    return listed(sorted({job.cluster for job in jobs if job.cluster})) or "unknown clusters"


def _sub_jobs(jobs: Sequence[JobState]) -> str:
    return "1 sub-job" if len(jobs) == 1 else f"{len(jobs)} sub-jobs"


def _state(phase: Phase, reason: str, message: str) -> State:
    return State(phase=phase, reason=str(reason), message=shortened(message, _MESSAGE_LIMIT))


TRUE_IN: Final[Mapping[str, Collection[Phase]]] = {
    CONDITION_QUOTA_RESERVED: STARTED | {Phase.STOPPING},
    CONDITION_ADMITTED: STARTED,
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
_OURS: Final = frozenset({*TRUE_IN, CONDITION_COMPLETED, CONDITION_FAILED})
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
    found = [each for kind, each in before.items() if kind not in _OURS]
    phase = state.phase
    never = state.reason in NEVER_RUNS and not phase.is_terminal
    for kind, phases in TRUE_IN.items():
        true = phase in phases and (kind != CONDITION_RECONCILING or not never)
        if kind == CONDITION_ADMITTED and phase is Phase.STARTING:
            true = dispatched
        if kind == CONDITION_STALLED and never:
            true = True
        explains = true != (kind in _STEPS) or kind == CONDITION_RUNNING
        reason = (state.reason if explains else kind if true else phase) or phase
        new = {
            "type": kind,
            "status": "True" if true else "False",
            "observedGeneration": generation,
            "reason": str(reason),
            "message": _MESSAGES[kind][true],
        }
        found.append(_since(before.get(kind, {}), new, now))
    return found


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
    new: Object = {
        "type": kind,
        "status": "True",
        "observedGeneration": generation,
        "reason": str(reason),
        "message": message,
    }
    return _since(next(before, {}), new, now)


def _since(before: Object, new: Object, now: str) -> Object:
    """Return a condition with its time, which an equal status keeps."""
    same = before.get("status") == new["status"]
    return new | {"lastTransitionTime": (same and string(before.get("lastTransitionTime"))) or now}
