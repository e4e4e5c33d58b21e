"""The runs of a sub-job, and the record of a restart; only this module counts attempts.

A run lasts from the first running pod of a vcjob to the end or the deletion of the vcjob. The
fields of the present run are in the entry of `status.jobs`; its `history` has the latest runs
before. A restart is recorded as the HyperJob with the status to write. Later passes delete and
create the objects: a failed sub-job again after a back-off, which depends on times in the status
alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.duration import doubled, later
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import ContainerFailure, JobStatus, Run
from hyperjob_core.api.wire import count, mapping, rfc3339, timestamp
from hyperjob_engine.lifecycle.decisions import Member, Recreation, Restart
from hyperjob_engine.lifecycle.stops import cause_of, may_run, stopped
from hyperjob_engine.model.observed import Observed, QueueVerdict, ReplicatedJob
from hyperjob_engine.model.parse import with_fields
from hyperjob_engine.model.split import split_scale
from hyperjob_engine.model.subjobs import Child, SubJob, choosing
from hyperjob_engine.reasons.pods import bounded, follows, in_short, one_line
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import fits

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


UNPLACED = "Unplaced"
FIRST: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(minutes=5)
STABLE: Final = timedelta(minutes=30)
"""After an attempt of this length the next one has no back-off: the program did not crash."""


def with_restart(observed: Observed, members: Sequence[Member], decided: Restart) -> Observed:
    """Return the observation as it is after the record of the restart."""
    hyperjob = observed.hyperjob
    chosen = {again.name: again for again in decided.again}
    records: dict[str, JobStatus] = dict(hyperjob.records)
    for sub_job, child in members:
        if child.name in chosen:
            again = chosen[child.name]
            record = _record(observed, sub_job, child, again)
            records[child.name] = replace(
                record, admitted=record.admitted and not decided.gives_back
            )
    status = dict(hyperjob.status)
    if chosen or not decided.size:
        status |= stopped(observed, members, chosen.keys(), cause_of(decided))
    if decided.spent:
        status["restarts"] = count(status.get("restarts")) + decided.spent
    if decided.handled:
        status["requests"] = mapping(status.get("requests")) | dict(decided.handled)
    verdict = QueueVerdict() if decided.gives_back else observed.verdict
    gang = decided.gang or hyperjob.gang
    hyperjob = with_fields(replace(hyperjob, records=records, gang=gang), status)
    hyperjob = choosing(hyperjob, decided.size)
    if decided.size and verdict is not None:
        added = {each.name: each for each in decided.added}
        left = {name: each for name, each in records.items() if name not in decided.leaving}
        hyperjob = replace(hyperjob, records=_shared_out(hyperjob.elastic, left) | added)
        verdict = QueueVerdict(admitted=verdict.admitted | added.keys(), chosen=decided.chosen)
    planned = decided.gives_back or bool(decided.handled or decided.size)
    stopped_by = TimeUse.LOST_TO_PLANNED_STOPS if planned else TimeUse.LOST_TO_FAILURES
    return replace(observed, hyperjob=hyperjob, verdict=verdict, stopped_by=stopped_by)


def _shared_out(
    group: ReplicatedJob | None, records: Mapping[str, JobStatus]
) -> dict[str, JobStatus]:
    """Return the records with shares of an automatic split that add up to its new size.

    What it gives up is pods of its last sub-jobs; one without a pod has no record any more. What it
    takes counts at the first one until all have ended: then the split is decided again.
    """
    found = dict(records)
    if group is None or group.split is None or not group.is_auto:
        return found
    scale = split_scale(group.split, group.template)
    own = [each for each in records.values() if each.replicated_job == group.name]
    over = sum(each.accelerators or 0 for each in own) - group.size
    for each in sorted(own, key=lambda each: each.index, reverse=over > 0):
        share = each.accelerators or 0
        if over and share - over >= scale.fixed + scale.per_pod:
            found[each.name], over = replace(each, accelerators=share - over), 0
        elif over:
            del found[each.name]
            over -= share
    return found


def _record(observed: Observed, sub_job: SubJob, child: Child, again: Recreation) -> JobStatus:
    """Return the record of a sub-job that is created again, as its next attempt.

    The back-off counts from the start of the attempt before: its `retry_time`, or for the first one
    the start of the HyperJob.
    """
    attempt = child.attempt + 1
    old = child.record or JobStatus(
        name=child.name,
        replicated_job=sub_job.group.name,
        index=sub_job.index,
        cluster=child.cluster,
        attempt=child.attempt,
    )
    began = old.retry_time or timestamp(observed.hyperjob.status.get("startTime"))
    due = retry_time(attempt, now=observed.now, began=began) if again.delayed else observed.now
    excluded = _excluded(observed, sub_job, old.excluded(observed.now), again.leave)
    left = again.leave if again.leave_for is None else ()
    for_good = tuple(name for name in excluded if name in old.for_good or name in left)
    until = old.excluded_until
    if again.leave and again.leave_for is not None:
        until = later(observed.now, again.leave_for)
    if for_good == excluded:
        until, for_good = None, ()
    return JobStatus(
        name=child.name,
        replicated_job=sub_job.group.name,
        index=sub_job.index,
        accelerators=old.accelerators,
        alternative=old.alternative,
        phase=UNPLACED,
        reason=Reason.RESTARTING,
        message=again.why,
        attempt=attempt,
        admitted=old.admitted,
        excluded_clusters=excluded,
        excluded_until=until,
        excluded_message=one_line(again.why) if again.leave else old.excluded_message,
        excluded_for_good=for_good,
        retry_time=due,
        history=_history(observed, child, old, again),
        training=old.training,
        last_transition_time=rfc3339(observed.now),
    )


def _history(
    observed: Observed, child: Child, record: JobStatus, again: Recreation
) -> tuple[Run, ...]:
    """Return the ended runs of a recreated sub-job; a sub-job that never ran adds none."""
    report = child.report
    start = record.start_time or started(observed, child, stops=True)
    if not start and not child.is_terminal:
        return record.history
    end = report.last_transition if child.is_terminal and report is not None else ""
    if child.is_terminal and not end:
        end = record.last_transition_time
    message = report.message or report.reason if report is not None else record.message
    failed = again.reason is Reason.JOB_FAILED
    over = run_over(
        record,
        phase=child.phase if report is not None else record.phase,
        start=start,
        end=end or rfc3339(observed.now),
        reason=again.reason,
        message=message if failed else again.why,
        failure=failure_of(observed, child),
    )
    return (*record.history, over)


def _excluded(
    observed: Observed, sub_job: SubJob, before: tuple[str, ...], leave: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the excluded clusters with `leave`, without the oldest ones if no cluster is left.

    Only clusters that the sub-job may use count: with two of them, the one excluded first becomes
    available again.
    """
    if not leave:
        return before
    request = sub_job.request()
    possible = {
        cluster.name
        for cluster in observed.clusters
        if cluster.usable
        and request.allows(cluster.name)
        and fits(request.demand, cluster.allocatable)
    }
    excluded = [*(name for name in before if name not in leave), *leave]
    while len(excluded) > 1 and possible.issubset(excluded):
        del excluded[0]
    return tuple(excluded)


def delay(attempt: int, lasted: timedelta | None) -> timedelta:
    """Return the wait before an attempt, from 1; `lasted` is the length of the attempt before.

    The wait is 0 before the first restart, and after an attempt of at least STABLE.
    """
    if attempt <= 1 or (lasted is not None and lasted >= STABLE):
        return timedelta()
    return doubled(FIRST, attempt - 2, LONGEST)


def retry_time(attempt: int, *, now: datetime, began: datetime | None) -> datetime:
    """Return when the controller may create an attempt; `began` is the start of the one before."""
    return now + delay(attempt, None if began is None else now - began)
