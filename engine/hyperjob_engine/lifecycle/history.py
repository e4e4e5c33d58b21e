"""The runs of a sub-job: the start of the present one, and the history of the ended ones.

A run lasts from the first running pod of a vcjob to the end or the deletion of the vcjob. The
fields of the present run are in the entry of `status.jobs`; its `history` has the latest runs
before.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import ContainerFailure, JobStatus, Run
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.lifecycle.stops import may_run
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.subjobs import Child
from hyperjob_engine.reasons.pods import bounded, follows, in_short, one_line

_KEPT: Final = 10
_KEPT_IN_ALL: Final = 500
_WITH_LAST_LINES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentRun:
    """The present run and the runs before it; `start` is empty until a pod runs."""

    start: str = ""
    failure: ContainerFailure | None = None
    history: tuple[Run, ...] = ()


def present_run(observed: Observed, child: Child, *, reason: str, message: str) -> PresentRun:
    """Return the run of a sub-job; `reason` and `message` are those of its present phase."""
    record = child.record
    history = record.history if record is not None else ()
    start = record.start_time if record is not None else ""
    failure = failure_of(observed, child)
    if child.exists or child.is_terminal:
        start = start or started(observed, child, stops=observed.hyperjob.suspend)
        return PresentRun(start=start, failure=failure, history=history)
    if record is not None and start:
        ended = run_over(record, end=rfc3339(observed.now), reason=reason, message=message)
        return PresentRun(history=(*history, ended))
    return PresentRun(history=history)


def failure_of(observed: Observed, child: Child) -> ContainerFailure | None:
    """Return the first failed container of the present attempt; None if it is unknown.

    A vcjob may still run when its pod has failed: that counts if others failed because of it.
    """
    if child.record is not None and child.record.failure is not None:
        return child.record.failure
    if child.job is None:
        return None
    found = (observed.causes or {}).get(child.job.uid)
    if child.phase.is_failed:
        return found
    own = found is not None and not follows(found) and observed.hyperjob.quorum is None
    return found if own and not child.is_terminal else None


def last_cluster(child: Child) -> str:
    """Return the cluster of the last run that is over; empty if there is none."""
    runs = child.record.history if child.record is not None else ()
    return runs[-1].cluster if runs else ""


def next_attempt(child: Child) -> int:
    """Return the attempt of the next vcjob; a run that a suspension ended has had its own.

    The attempt grows with each vcjob that ran: no two runs of a program have one number.
    """
    runs = child.record.history if child.record is not None else ()
    gone = child.job is None and child.policy is None and not child.is_terminal
    ran = bool(runs) and runs[-1].attempt == child.attempt
    return child.attempt + 1 if gone and ran else child.attempt


def started(observed: Observed, child: Child, *, stops: bool = False) -> str:
    """Return the start of the present run of a sub-job; empty if it is not known to have run.

    A phase says less than the pods: Volcano ends a vcjob whose pods the cluster refuses through
    Terminating too. If it `stops`, pods that may run count as a run: the history has the cluster
    of their logs.
    """
    report = child.report
    if report is not None and report.began:
        return report.began
    if report is not None and report.phase is JobPhase.RUNNING and report.last_transition:
        return report.last_transition
    if report is not None and report.has_run:
        return rfc3339(observed.now)
    if stops and observed.hyperjob.checkpoint is not None and may_run(observed, child):
        return rfc3339(observed.now)
    return ""


def run_over(
    record: JobStatus,
    *,
    end: str,
    reason: str,
    message: str,
    phase: str = "",
    start: str = "",
    failure: ContainerFailure | None = None,
) -> Run:
    """Return the run of a record, ended at `end`."""
    failure = failure or record.failure
    return Run(
        attempt=record.attempt,
        cluster=record.cluster,
        start=start or record.start_time,
        end=end,
        phase=phase or record.phase,
        reason=reason,
        message=one_line(message),
        failure=None if failure is None else bounded(failure),
    )


def kept(histories: Sequence[Sequence[Run]]) -> list[Sequence[Run]]:
    """Return the latest runs of each sub-job, as many as the status may have.

    The latest failures alone keep their last lines: an object in etcd has at most 1.5 MiB.
    """
    latest = _in_short([history[-_KEPT:] for history in histories])
    if sum(map(len, latest)) <= _KEPT_IN_ALL:
        return latest
    by_end = sorted(
        ((run.end, index) for index, runs in enumerate(latest) for run in runs), reverse=True
    )
    left = Counter(index for _, index in by_end[:_KEPT_IN_ALL])
    return [runs[len(runs) - left[index] :] for index, runs in enumerate(latest)]


def _in_short(histories: Sequence[Sequence[Run]]) -> list[Sequence[Run]]:
    """Return the runs, of which the latest failures have the last lines of their logs."""
    logs = [run.end for runs in histories for run in runs if run.failure and run.failure.last_lines]
    if len(logs) <= _WITH_LAST_LINES:
        return list(histories)
    since = sorted(logs)[-_WITH_LAST_LINES]
    return [
        [
            run
            if run.failure is None or run.end >= since
            else replace(run, failure=in_short(run.failure))
            for run in runs
        ]
        for runs in histories
    ]
