"""The track of one program: step, speed and checkpoint from its progress lines. Pure.

A step below the last one means that the program restarted. Times are those of the node, at most the
controller's present time.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_engine.model.training import JobTraining
from hyperjob_engine.training.lines import ProgressLine

_SAMPLES: Final = 64
WINDOW: Final = timedelta(minutes=10)
"""The speed is the average over this time, if it has at least two lines."""
OUT_OF_ORDER: Final = timedelta(seconds=1)
"""A lower step within this time after the last line is a late line of another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The progress of a program; `samples` are (step, time), both rising."""

    start_step: int
    started: datetime
    samples: tuple[tuple[int, datetime], ...]
    steps: int | None = None
    saved_step: int | None = None
    saved: datetime | None = None
    metrics: dict[str, str] = field(default_factory=dict)

    @property
    def last(self) -> tuple[int, datetime]:
        """Return the last step and its time."""
        return self.samples[-1]


def advance(track: Track | None, line: ProgressLine, *, now: datetime) -> Track:
    """Return the track with one more line."""
    time = min(line.time, now)
    if track is None:
        return _beginning(line, time)
    step, last = track.last
    time = max(time, last)
    if line.step < step:
        if time - last < OUT_OF_ORDER:
            return track
        return _began_again(track, _beginning(line, time))
    samples = track.samples
    if line.step > step:
        samples = (*samples, (line.step, time))[-_SAMPLES:]
    track = replace(
        track,
        samples=samples,
        steps=line.steps if line.steps is not None else track.steps,
        metrics=dict(line.metrics) or track.metrics,
    )
    if line.saved is not None and line.saved != track.saved_step:
        # An older checkpoint than before: the newer one was deleted or is unreadable.
        track = replace(track, saved_step=line.saved, saved=_made(track, line.saved))
    return track


def training_of(track: Track, *, attempt: int, uid: str = "") -> JobTraining:
    """Return the training progress of a track."""
    step, updated = track.last
    return JobTraining(
        step=step,
        updated=updated,
        start_step=track.start_step,
        started=track.started,
        saved_step=track.saved_step,
        saved=track.saved,
        attempt=attempt,
        uid=uid,
        steps=track.steps,
        steps_per_second=speed(track.samples),
        metrics=track.metrics,
    )


def speed(samples: tuple[tuple[int, datetime], ...]) -> float | None:
    """Return steps per second over the window, pauses included; None without two lines."""
    if len(samples) < 2:
        return None
    last_step, last = samples[-1]
    recent = [each for each in samples if last - each[1] <= WINDOW]
    first_step, first = recent[0] if len(recent) > 1 else samples[-2]
    seconds = (last - first).total_seconds()
    return (last_step - first_step) / seconds if seconds > 0 else None


def _beginning(line: ProgressLine, time: datetime) -> Track:
    return Track(
        start_step=line.step,
        started=time,
        samples=((line.step, time),),
        steps=line.steps,
        saved_step=line.saved,
        saved=None if line.saved is None else time,
        metrics=dict(line.metrics),
    )


def _began_again(before: Track, after: Track) -> Track:
    """Return the track of a restarted program, with the checkpoint from which it resumed."""
    kept = before.saved_step
    if after.saved_step is None and kept is not None and kept <= after.start_step:
        after = replace(after, saved_step=kept, saved=after.started)
    return replace(after, steps=after.steps or before.steps)


def _made(track: Track, step: int) -> datetime:
    """Return when the program made a step, by the lines around it."""
    before = track.samples[0]
    for after in track.samples:
        if step <= after[0]:
            if step <= before[0]:
                return before[1]
            part = (step - before[0]) / (after[0] - before[0])
            return before[1] + (after[1] - before[1]) * part
        before = after
    return track.last[1]
