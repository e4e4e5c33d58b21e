"""The timeline of a HyperJob: spans of time from the status, lanes and a table. Pure.

The status has the present phase of each sub-job, its ended runs, and the time of the first
admission. What the HyperJob was between them is told by the runs of its sub-jobs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from hyperjob.client.summary import Summary
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.status import JobStatus, Run
from hyperjob_core.api.wire import timestamp
from hyperjob_core.text import human_duration, shortened
from hyperjob_engine.reasons.pods import container_text
from hyperjob_engine.reasons.reason import Reason

ROUND_SECONDS: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000),
)
"""Distances of labels on an axis of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A time on the axis, at `at` percent."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The time between `begin` and `end`, which is later."""

    begin: datetime
    end: datetime

    def at(self, moment: datetime) -> float:
        """Return the position of a time in percent."""
        whole = (self.end - self.begin).total_seconds()
        part = (moment - self.begin).total_seconds() / whole
        return round(100 * min(max(part, 0.0), 1.0), 3)


def ticks_of(scale: TimeScale) -> list[Tick]:
    """Return at most nine round times; at most 16 where the axis is longer than eight years."""
    whole = (scale.end - scale.begin).total_seconds()
    seconds = next((each for each in ROUND_SECONDS if whole / each <= 8), ROUND_SECONDS[-1])
    step = timedelta(seconds=seconds)
    first = datetime.fromtimestamp(-(-scale.begin.timestamp() // seconds) * seconds, UTC)
    form = "%m-%d" if step >= timedelta(days=1) else "%H:%M"
    form = "%H:%M:%S" if step < timedelta(minutes=1) else form
    found: list[Tick] = []
    moment = first
    while moment <= scale.end and len(found) < 16:
        found.append(Tick(at=scale.at(moment), text=moment.strftime(form)))
        moment += step
    return found


_SPAN_MESSAGE: Final = 500
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

    def length(self, now: datetime) -> str:
        """Return how long the span lasts until `now`; empty for a moment."""
        seconds = ((self.end or now) - self.begin).total_seconds()
        return human_duration(seconds) if seconds > 0 else ""


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
            message=summary.message[:_SPAN_MESSAGE],
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
        message=(container_text(job.failure) if job.failure else job.message)[:_SPAN_MESSAGE],
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


_LANES: Final = 60
_ROWS: Final = 300
_MESSAGE: Final = 300
_WAITING: Final = frozenset({"Unplaced", "Queued", str(Phase.PENDING), ""})
_STARTING: Final = frozenset({"Placed", str(Phase.STARTING), "Unknown"})
_SMALLEST: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineBar:
    """A block of a lane in percent; `kind` is a CSS class, `label` the text in the block."""

    kind: str
    start: float
    width: float
    label: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLane:
    """A sub-job, or the HyperJob itself when `job` is empty; `marks` are failures."""

    job: str
    label: str
    blocks: Sequence[TimelineBar]
    marks: Sequence[TimelineBar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All lanes between two times; `hidden` is the number of lanes without a picture.

    `runs` are the spans for the table, the latest first.
    """

    begin: datetime
    end: datetime
    now: datetime
    lanes: Sequence[TimelineLane]
    ticks: Sequence[Tick]
    runs: Sequence[Span]
    hidden: int


def timeline(summary: Summary, spans: Sequence[Span], now: datetime) -> Timeline:
    """Return the timeline of the spans of a HyperJob, of which there is at least one."""
    spans = [span for span in spans if span.phase]
    begin = min(span.begin for span in spans)
    end = max(span.end or span.begin for span in spans) if summary.has_ended else now
    scale = TimeScale(begin, max(end, begin + timedelta(seconds=1)))
    by_job: dict[str, list[Span]] = {}
    for span in spans:
        by_job.setdefault(span.job, []).append(span)
    shown = list(by_job.items())[:_LANES]
    return Timeline(
        begin=scale.begin,
        end=scale.end,
        now=now,
        lanes=[_lane(name, each, summary.name, scale, now) for name, each in shown],
        ticks=ticks_of(scale),
        runs=sorted(spans, key=lambda span: (span.begin, span.job), reverse=True)[:_ROWS],
        hidden=max(0, len(by_job) - _LANES),
    )


def _lane(
    name: str, spans: Iterable[Span], hyperjob: str, scale: TimeScale, now: datetime
) -> TimelineLane:
    """Return the lane of a sub-job, or of the HyperJob for an empty name; the present ends now."""
    blocks: list[TimelineBar] = []
    marks: list[TimelineBar] = []
    for span in spans:
        start, end = scale.at(span.begin), scale.at(span.end or now)
        title = _tooltip(span, now)
        if JobPhase(span.phase).is_failed or span.phase == Phase.FAILED:
            marks.append(TimelineBar(kind="failed", start=start, width=0, label="", title=title))
        if end <= start:
            continue
        _draw(
            blocks,
            TimelineBar(
                kind=_kind(span),
                start=start,
                width=max(end - start, _SMALLEST),
                label=_label(span),
                title=title,
            ),
        )
    label = name.removeprefix(f"{hyperjob}-") or hyperjob
    return TimelineLane(job=name, label=label, blocks=blocks, marks=marks)


def _draw(blocks: list[TimelineBar], new: TimelineBar) -> None:
    """Add a block; extend the block before it if both look alike."""
    last = blocks[-1] if blocks else None
    alike = last is not None and (last.kind, last.label) == (new.kind, new.label)
    if last is not None and alike and new.start - last.start - last.width < _SMALLEST:
        width = new.start + new.width - last.start
        blocks[-1] = replace(last, width=width, title=new.title)
    else:
        blocks.append(new)


def _kind(span: Span) -> str:
    phase = span.phase
    if phase in (Phase.STOPPING, Phase.SUSPENDED) or span.reason == Reason.SUSPENDED:
        return "suspended"
    if phase in (Phase.RUNNING, JobPhase.COMPLETING):
        return "running"
    if phase == Phase.DEGRADED:
        return "degraded"
    if phase in (Phase.RESTARTING, JobPhase.ABORTING, JobPhase.TERMINATING):
        return "restarting"
    if phase in _WAITING and not (span.job and span.cluster):
        return "waiting"
    if phase in _STARTING or span.cluster:
        return "starting"
    return "waiting"


def _label(span: Span) -> str:
    if not span.job:
        return span.phase
    attempt = f" · try {span.attempt}" if span.attempt > 1 else ""
    return f"{span.cluster or span.phase}{attempt}"


def _tooltip(span: Span, now: datetime) -> str:
    parts = [span.job or "HyperJob", span.phase]
    if span.cluster:
        parts.append(f"on {span.cluster}")
    if span.job:
        parts.append(f"attempt {span.attempt}")
    length = span.length(now) or "0s"
    parts.append(f"from {span.begin.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC for {length}")
    if span.reason:
        parts.append(span.reason)
    if span.message:
        parts.append(shortened(span.message, _MESSAGE))
    return ", ".join(parts)
