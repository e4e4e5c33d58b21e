"""The failed sub-jobs whose pods the controller reads for the cause, before it acts on the failure.

A restart deletes the pods, and with them the exit codes of their containers.
"""

from collections.abc import Sequence
from typing import Final

from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import FailedJob

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
