"""What the controller reads in the members before it acts on the end of a sub-job.

A restart deletes the pods, and with them the exit codes of their containers. The end of a HyperJob
is final: its progress has the last lines of its programs, unless a cluster does not answer.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import FailedJob

LINES_TIME_LIMIT: Final = timedelta(seconds=10)
"""How long an end waits for the last lines of programs that are known to report."""
_ASKED: Final = 4
_LAST: Final = "~"  # sorts after every time


def unexplained(observed: Observed, members: Sequence[Member]) -> tuple[FailedJob, ...]:
    """Return the sub-jobs that failed first, if the cause of one of them is not known yet."""
    causes = observed.causes
    if causes is None:
        return ()
    reachable = {cluster.name for cluster in observed.clusters if cluster.not_ready_since is None}
    failed = [
        (report.last_transition or _LAST, FailedJob(name=child.name, uid=job.uid, cluster=where))
        for _, child in members
        if (job := child.job) is not None
        and (report := child.report) is not None
        and report.phase.is_failed
        and (where := child.cluster) in reachable
        and (child.record is None or child.record.failure is None)
    ]
    first = [job for _, job in sorted(failed, key=lambda each: each[0])[:_ASKED]]
    return tuple(first) if any(job.uid not in causes for job in first) else ()


def unread(observed: Observed, members: Sequence[Member]) -> timedelta | None:
    """Return for how long the end of a HyperJob may wait for last lines; None if all are read."""
    waits = [
        LINES_TIME_LIMIT - (observed.now - (training.ends or report.since))
        for _, child in members
        if (report := child.report) is not None
        and report.since is not None
        and report.phase.is_terminal
        and (training := observed.trainings.get(child.name)) is not None
        and training.reported
        and training.attempt == child.attempt
        and not training.ended
    ]
    # The clock of the member may be ahead: the wait has a limit of its own.
    longest = min(max(waits, default=timedelta()), LINES_TIME_LIMIT)
    return longest if longest > timedelta() else None
