"""What the controller reads in the members before it acts on the end of a sub-job.

A restart deletes the pods, and with them the exit codes of their containers. The end of a HyperJob
is final: its progress has the last lines of its programs, unless a cluster does not answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hyperjob_core.api.status import ContainerFailure
from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Job, Observed, Ownership
from hyperjob_engine.model.planned import FailedJob
from hyperjob_engine.reasons.failure import follows

LINES_TIME_LIMIT: Final = timedelta(seconds=10)
"""How long an end waits for the last lines of programs that are known to report."""
CAUSE_TIME_LIMIT: Final = timedelta(seconds=5)
"""How long a decision waits for an answer, and for a failure that is no result of another one."""
_ASKED: Final = 4
_SIBLINGS: Final = 16
_LAST: Final = "~"  # sorts after every time


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The sub-jobs whose failed pods are read before a decision, and for how long it waits."""

    jobs: tuple[FailedJob, ...]
    wait: timedelta


def unexplained(observed: Observed, members: Sequence[Member]) -> Asking | None:
    """Return the sub-jobs whose failures are read before a decision; None if a cause is known.

    Those that failed first are read, further ones while each failure follows from another one, such
    as a lost connection to a peer. Then a pod that has not ended yet may have the cause, of a
    failed sub-job or of one whose vcjob still runs.
    """
    causes = observed.causes
    if causes is None:
        return None
    failed = _failed(observed, members)
    asked: list[FailedJob] = []
    for start in range(0, len(failed), _ASKED):
        asked += failed[start : start + _ASKED]
        if any(job.uid not in causes for job in asked):
            return Asking(jobs=tuple(asked), wait=CAUSE_TIME_LIMIT)
        if not all(_follows(causes[job.uid]) for job in asked):
            return None
    running = _running(observed, members)
    ends = [job for job in asked if observed.pods_left.get(job.name)]
    if not asked or not (running or ends):
        return None
    asked_at = min(observed.asked.get(job.uid, observed.now) for job in asked)
    wait = CAUSE_TIME_LIMIT - (observed.now - asked_at)
    return Asking(jobs=(*asked, *running), wait=wait) if wait > timedelta() else None


def _failed(observed: Observed, members: Sequence[Member]) -> list[FailedJob]:
    """Return the failed sub-jobs without a recorded cause, the earliest first."""
    reachable = _reachable(observed)
    failed = [
        (report.last_transition or _LAST, _failed_job(child, job, where))
        for _, child in members
        if (job := child.job) is not None
        and (report := child.report) is not None
        and report.phase.is_failed
        and (where := child.cluster) in reachable
        and (child.record is None or child.record.failure is None)
    ]
    return [job for _, job in sorted(failed, key=lambda each: each[0])]


def _running(observed: Observed, members: Sequence[Member]) -> list[FailedJob]:
    """Return the first sub-jobs that have not ended."""
    reachable = _reachable(observed)
    return [
        _failed_job(child, job, child.cluster)
        for _, child in members
        if (job := child.job) is not None
        and job.ownership is Ownership.OURS
        and child.report is not None
        and not child.is_terminal
        and child.cluster in reachable
    ][:_SIBLINGS]


def _failed_job(child: Child, job: Job, cluster: str) -> FailedJob:
    return FailedJob(name=child.name, uid=job.uid, cluster=cluster, attempt=child.attempt)


def _reachable(observed: Observed) -> set[str]:
    return {cluster.name for cluster in observed.clusters if cluster.not_ready_since is None}


def _follows(failure: ContainerFailure | None) -> bool:
    return failure is not None and follows(failure)


def unread(observed: Observed, members: Sequence[Member]) -> timedelta | None:
    """Return for how long the end of a HyperJob may wait for last lines; None if all are read."""
    waits = [
        LINES_TIME_LIMIT - (observed.now - (training.ends or report.since))
        for _, child in members
        if (report := child.report) is not None
        and report.since is not None
        and report.phase.is_terminal
        and (training := observed.trainings.get(child.name)) is not None
        and training.attempt == child.attempt
        and not training.ended
    ]
    # The clock of the member may be ahead: the wait has a limit of its own.
    longest = min(max(waits, default=timedelta()), LINES_TIME_LIMIT)
    return longest if longest > timedelta() else None
