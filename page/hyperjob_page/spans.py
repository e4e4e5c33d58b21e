"""The spans of time of a HyperJob and its sub-jobs, each in one phase, from the status. Pure.

The status has the present phase of each, the ended runs of sub-jobs, and the time of the first
admission. What the HyperJob was between them is told by the runs of its sub-jobs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Final

from hyperjob.client.summary import Summary
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.status import JobStatus, Run
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.reasons.pods import container_text

_MESSAGE: Final = 500
_ENDS: Final = frozenset({Phase.COMPLETED, Phase.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span of time in which the phase of a track did not change.

    A track is a sub-job, or with an empty `job` the HyperJob itself; `attempt` counts from 1.
    `end` is None for the present span. A span whose end equals its begin is a moment.
    """

    job: str
    attempt: int = 1
    cluster: str = ""
    phase: str
    reason: str = ""
    message: str = ""
    begin: datetime
    end: datetime | None = None


def spans_of(summary: Summary, now: datetime, *, admitted: str = "") -> list[Span]:
    """Return the spans of a HyperJob, then those of each sub-job in order; none begins after `now`.

    `admitted` is the time of the first admission. The spans of a track do not overlap.
    """
    tracks = [_of_job(job, now) for job in summary.jobs]
    runs = [span for track in tracks for span in track if span.phase == JobPhase.RUNNING]
    return [
        *_of_hyperjob(summary, runs, admitted, now),
        *(span for each in tracks for span in each),
    ]


def _of_hyperjob(
    summary: Summary, runs: Iterable[Span], admitted: str, now: datetime
) -> list[Span]:
    """Return the wait for the first admission, the times in which sub-jobs ran, and the present."""
    since = _known(summary.since or summary.created, now)
    spans = [
        Span(
            job="",
            attempt=summary.restarts + 1,
            phase=summary.phase,
            reason=summary.reason,
            message=summary.message[:_MESSAGE],
            begin=since,
            end=since if summary.phase in _ENDS else None,
        )
    ]
    created = _known(summary.created, now)
    first = min(since, _known(admitted, now))
    if created < first:
        spans.append(Span(job="", phase=Phase.PENDING, begin=created, end=first))
    spans += [
        Span(job="", phase=Phase.RUNNING, begin=begin, end=end)
        for begin, end in _united(
            (max(run.begin, first), min(run.end, since)) for run in runs if run.end is not None
        )
    ]
    return _in_order(spans)


def _of_job(job: JobStatus, now: datetime) -> list[Span]:
    """Return each ended run of a sub-job with its end as a moment, and the present phase."""
    spans: list[Span] = []
    for run in job.history:
        spans += _of_run(job.name, run, now)
    # Times of different clocks: the present follows all that is over.
    since = max([_known(job.last_transition_time, now), *(span.begin for span in spans)])
    present = Span(
        job=job.name,
        attempt=job.number,
        cluster=job.cluster,
        phase=job.phase,
        reason=job.reason,
        message=(container_text(job.failure) if job.failure else job.message)[:_MESSAGE],
        begin=since,
        end=since if JobPhase(job.phase).is_terminal else None,
    )
    started = _known(job.start_time, since)
    if started < since:
        ran = replace(present, phase=JobPhase.RUNNING, reason="", message="")
        spans.append(replace(ran, begin=started, end=since))
    return _in_order([*spans, present])


def _of_run(job: str, run: Run, now: datetime) -> list[Span]:
    """Return an ended run as a Running span, and its end as a moment; none without an end."""
    if timestamp(run.end) is None:
        return []
    end = _known(run.end, now)
    begin = min(_known(run.start, end), end)
    ended = Span(
        job=job,
        attempt=run.attempt + 1,
        cluster=run.cluster,
        phase=run.phase,
        reason=run.reason,
        message=run.message if run.failure is None else container_text(run.failure),
        begin=end,
        end=end,
    )
    ran = replace(ended, phase=JobPhase.RUNNING, reason="", message="", begin=begin)
    return [ran, ended] if begin < end else [ended]


def _in_order(spans: Iterable[Span]) -> list[Span]:
    """Order the spans of a track by time, and cut each where the next one begins."""
    ordered = sorted(spans, key=lambda span: (span.begin, span.end is None, span.end or span.begin))
    cut = [
        replace(span, end=after.begin) if span.end is None or span.end > after.begin else span
        for span, after in pairwise(ordered)
    ]
    return [*cut, *ordered[-1:]]


def _united(times: Iterable[tuple[datetime, datetime]]) -> Sequence[tuple[datetime, datetime]]:
    """Return the times in which at least one of several lasts, in order."""
    found: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(times):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif begin < end:
            found.append((begin, end))
    return found


def _known(text: str, latest: datetime) -> datetime:
    """Parse a timestamp of the API server, at most `latest`; `latest` without a timestamp."""
    found = timestamp(text)
    return latest if found is None else min(found, latest)
