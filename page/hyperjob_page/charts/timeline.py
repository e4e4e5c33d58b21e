"""The timeline of a HyperJob: a lane for it and for each sub-job, and a table of its runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob.client.summary import Summary
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.text import human_duration, shortened
from hyperjob_engine.reasons.reason import Reason
from hyperjob_page.charts.axis import Tick, TimeScale, ticks_of
from hyperjob_page.spans import Span

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
class TimelineSpan:
    """A span as a row of the table; `length` is empty for a moment."""

    job: str
    attempt: int
    phase: str
    cluster: str
    begin: datetime
    length: str
    lasts: bool
    reason: str
    message: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All lanes between two times; `hidden` is the number of lanes without a picture."""

    begin: datetime
    end: datetime
    lanes: Sequence[TimelineLane]
    ticks: Sequence[Tick]
    runs: Sequence[TimelineSpan]
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
        lanes=[_lane(name, each, summary.name, scale, now) for name, each in shown],
        ticks=ticks_of(scale),
        runs=_table_rows(spans, now),
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
        if _failed(span):
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
    """Return the CSS class of a span's block."""
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
    length = human_duration(((span.end or now) - span.begin).total_seconds())
    parts.append(f"from {span.begin.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC for {length}")
    if span.reason:
        parts.append(span.reason)
    if span.message:
        parts.append(shortened(span.message, _MESSAGE))
    return ", ".join(parts)


def _failed(span: Span) -> bool:
    """Return whether a span is a failure."""
    return JobPhase(span.phase).is_failed or span.phase == Phase.FAILED


def _table_rows(spans: Sequence[Span], now: datetime) -> list[TimelineSpan]:
    """Return the spans as rows of the table, the latest first."""
    chosen = sorted(spans, key=lambda span: (span.begin, span.job), reverse=True)[:_ROWS]
    return [
        TimelineSpan(
            job=span.job,
            attempt=span.attempt,
            phase=span.phase,
            cluster=span.cluster,
            begin=span.begin,
            length=_length(span, now),
            lasts=span.end is None,
            reason=span.reason,
            message=shortened(span.message, _MESSAGE),
            failed=_failed(span),
        )
        for span in chosen
    ]


def _length(span: Span, now: datetime) -> str:
    seconds = ((span.end or now) - span.begin).total_seconds()
    return human_duration(seconds) if seconds > 0 else ""
