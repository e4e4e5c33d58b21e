"""The history before the page started, from the status and Events. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

from hyperjob.client.events import event_begin, event_time
from hyperjob.client.summary import SubJob, Summary
from hyperjob.ui.history.spans import TICK, Span
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import at, string, timestamp
from hyperjob_engine.model.runs import Run
from hyperjob_engine.reasons.failure import container_text

Change: TypeAlias = tuple[datetime, str]
"""The time at which a HyperJob entered a phase, and the phase."""
_PHASES: Final = frozenset(map(str, Phase))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run that has ended; `attempt` counts from 1."""

    attempt: int
    cluster: str
    begin: datetime
    end: datetime
    phase: str
    reason: str
    message: str


def past(summary: Summary, now: datetime) -> list[Span]:
    """Return the spans of the status before its present phases."""
    spans = _of_hyperjob(summary, now)
    for job in summary.jobs:
        spans += _of_job(job, now)
    return spans


def missing(recorded: Iterable[Span], told: Sequence[Span]) -> list[Span]:
    """Return the spans of `told`, from the status, before the first `recorded` span of each track.

    They are cut at the begin of the recorded span, and left out if they would begin later.
    """
    first: dict[str, datetime] = {}
    for span in recorded:
        first[span.job] = min(first.get(span.job, span.begin), span.begin)
    result: list[Span] = []
    for span in told:
        limit = first.get(span.job)
        if limit is None:
            result.append(span)
        elif span.begin < limit:
            end = limit if span.end is None else min(span.end, limit)
            result.append(replace(span, end=end))
    return result


def changes_of(events: Iterable[Object]) -> dict[str, list[Change]]:
    """Return the changes of phase in Events about HyperJobs, by uid and in order.

    The reason of the controller's Event for a change is the phase.
    """
    found: dict[str, set[Change]] = {}
    for event in events:
        phase = string(event.get("reason"))
        uid = string(at(event, "involvedObject", "uid"))
        if phase not in _PHASES or not uid:
            continue
        for time in (event_begin(event), event_time(event)):
            moment = timestamp(time)
            if moment is not None:
                found.setdefault(uid, set()).add((moment, phase))
    return {uid: sorted(changes) for uid, changes in found.items()}


def filled(spans: Iterable[Span], changes: Sequence[Change]) -> list[Span]:
    """Return the spans that replace those of the HyperJob without a phase, from its Events.

    Only a span that has ended is filled in, and only where an Event has its phase.
    """
    result: list[Span] = []
    for span in spans:
        if span.job or span.phase or span.end is None:
            continue
        last = span
        for moment, phase in changes:
            begin = max(moment, last.begin + TICK) if last.phase else moment
            if phase != last.phase and span.begin <= begin < span.end:
                if begin > last.begin:
                    result.append(replace(last, end=begin))
                last = replace(span, phase=phase, begin=begin)
        if last.phase:
            result.append(last)
    return result


def resumed(
    before: Mapping[str, Span], told: Sequence[Span], seen_until: datetime
) -> tuple[list[Span], dict[str, Span]]:
    """Fill in the spans between `seen_until`, when the recorder ended, and now, from the status.

    `before` is the last recorded span of each track, `told` are the spans of the status. Returns
    the spans to write, and the last span of each track, with which `follow` continues.
    """
    written: list[Span] = []
    after = dict(before)
    for span in told:
        old = before.get(span.job)
        if old is None or span.end is None or span.end <= seen_until:
            continue
        last = after[span.job]
        if last.end is None:
            last = replace(last, end=max(seen_until, last.begin))
            written.append(last)
        begin = max(span.begin, last.end or last.begin, last.begin + TICK)
        after[span.job] = replace(span, begin=begin, end=max(span.end, begin))
        written.append(after[span.job])
    return written, after


def _of_hyperjob(summary: Summary, now: datetime) -> list[Span]:
    """Return a span without a phase from the creation to the present phase, if there is time."""
    created, since = timestamp(summary.created), timestamp(summary.since)
    until = since or now
    if created is None or created >= until:
        return []
    # The status does not have the phases before the present one.
    return [_span("", summary.restarts + 1, "", "", created, min(until, now))]


def _of_job(job: SubJob, now: datetime) -> list[Span]:
    """Return each ended run of a sub-job as a Running span, and its end as a moment."""
    spans: list[Span] = []
    for run in sorted(_ended_runs(job.history), key=lambda one: (one.end, one.begin)):
        begin = max(run.begin, spans[-1].begin + TICK) if spans else run.begin
        ran = run.begin < run.end
        end = max(run.end, begin + TICK if ran else begin)
        if end > now:
            break
        if ran:
            spans.append(_span(job.name, run.attempt, run.cluster, JobPhase.RUNNING, begin, end))
        spans.append(
            replace(
                _span(job.name, run.attempt, run.cluster, run.phase, end, end),
                reason=run.reason,
                message=run.message,
            )
        )
    started, ended = timestamp(job.started), timestamp(job.since)
    if job.has_ended and started is not None and ended is not None:
        begin = max(started, spans[-1].begin + TICK) if spans else started
        if begin < ended <= now:
            spans.append(_span(job.name, job.attempt, job.cluster, JobPhase.RUNNING, begin, ended))
    return spans


def _ended_runs(history: Iterable[Run]) -> Iterable[_Run]:
    """Yield the runs whose end is known; one without a start lasts no time."""
    for run in history:
        end = timestamp(run.end)
        if end is not None:
            yield _Run(
                attempt=run.attempt + 1,
                cluster=run.cluster,
                begin=timestamp(run.start) or end,
                end=end,
                phase=run.phase,
                reason=run.reason,
                message=run.message if run.failure is None else container_text(run.failure),
            )


def _span(job: str, attempt: int, cluster: str, phase: str, begin: datetime, end: datetime) -> Span:
    return Span(
        job=job,
        attempt=attempt,
        cluster=cluster,
        phase=phase,
        reason="",
        message="",
        begin=begin,
        end=end,
    )
