"""Spans of time in one phase, from successive states of a HyperJob. Pure.

A track is a HyperJob (`job` empty) or one of its sub-jobs; its spans follow one another and never
overlap. The last span is open until the state changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob.client.summary import Summary
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.reasons.failure import container_text

TICK: Final = timedelta(milliseconds=1)
"""Minimum time between the begins of two spans of a track, since the begin identifies a span."""
_MESSAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span of time in which the state of a track did not change.

    `job` is empty for the HyperJob itself, `attempt` counts from 1, `phase` is empty where it is
    unknown, `end` is None for an open span. A span whose end equals its begin is a moment.
    """

    job: str
    attempt: int
    cluster: str
    phase: str
    reason: str
    message: str
    begin: datetime
    end: datetime | None = None

    @property
    def state(self) -> tuple[int, str, str, str]:
        """Return the values whose change begins a new span."""
        return self.attempt, self.cluster, self.phase, self.reason


@dataclass(frozen=True, slots=True)
class Sample:
    """The used and the total number of accelerators at a time, in whole accelerators."""

    at: datetime
    used: int
    total: int


def states(summary: Summary, now: datetime) -> list[Span]:
    """Return the open span of each track from the status; it begins at the last transition."""
    found = [
        Span(
            job="",
            attempt=summary.restarts + 1,
            cluster="",
            phase=summary.phase,
            reason=summary.reason,
            message=summary.message[:_MESSAGE],
            begin=_not_after(now, summary.since or summary.created),
        )
    ]
    found += [
        Span(
            job=job.name,
            attempt=job.attempt,
            cluster=job.cluster,
            phase=job.phase,
            reason=job.reason,
            message=(container_text(job.failure) if job.failure else job.message)[:_MESSAGE],
            begin=_not_after(now, job.since),
        )
        for job in summary.jobs
    ]
    return [_as_moment(span) for span in found]


def follow(
    before: Mapping[str, Span], seen: Iterable[Span], now: datetime
) -> tuple[list[Span], dict[str, Span]]:
    """Return the spans to write, and the last span of each track, for a new state.

    `before` is the last span of each track. A track that is no longer seen ends now.
    """
    written: list[Span] = []
    after: dict[str, Span] = {}
    for new in seen:
        old = before.get(new.job)
        if old is None:
            written.append(new)
            after[new.job] = new
        elif old.state == new.state and (old.end is None) == (new.end is None):
            kept = old if old.message == new.message else replace(old, message=new.message)
            if kept is not old:
                written.append(kept)
            after[new.job] = kept
        else:
            # The status has a transition time for the phase only; other changes begin now.
            begin = new.begin if old.phase != new.phase else now
            begin = max(begin, old.end or old.begin, old.begin + TICK)
            if old.end is None:
                written.append(replace(old, end=begin))
            moved = replace(new, begin=begin, end=None if new.end is None else begin)
            written.append(moved)
            after[new.job] = moved
    for job, old in before.items():
        if job not in after:
            after[job] = old if old.end is not None else replace(old, end=max(now, old.begin))
            if after[job] is not old:
                written.append(after[job])
    return written, after


def tidy(spans: Iterable[Span]) -> list[Span]:
    """Order spans by track and time and cut each where the next one begins.

    Only a file with a lost write needs the cut.
    """
    result: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.job, one.begin, one.end is None)):
        if result and result[-1].job == span.job:
            last = result[-1]
            if last.end is None or last.end > span.begin:
                result[-1] = replace(last, end=span.begin)
        result.append(span)
    return result


def _as_moment(span: Span) -> Span:
    """Return the span as a moment if its phase is final."""
    terminal = span.phase in _ENDS if not span.job else JobPhase(span.phase).is_terminal
    return replace(span, end=span.begin) if terminal else span


def _not_after(now: datetime, text: str) -> datetime:
    """Parse a timestamp of the API server, at most `now`; `now` without a timestamp."""
    found = timestamp(text)
    return now if found is None or found > now else found


_ENDS: Final = frozenset({Phase.COMPLETED, Phase.FAILED})
