"""The training of a sub-job: the track of a program by its progress lines, its stall and its waits.

A step below the last one means that the program restarted. Times are those of the node, at most the
controller's present time. One read never decides about a stall: the reader looks twice, and the
record in the status stays until the program makes a step, or its sub-job starts again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from statistics import median
from typing import Final

from hyperjob_core.api.lines import MOST_LINES, ProgressLine
from hyperjob_core.api.training import Straggler, SubJobTraining
from hyperjob_engine.reasons.stacks import Pod, Survey

_LEAST_PATIENCE: Final = timedelta(seconds=20)
_FIRST_PATIENCE: Final = timedelta(minutes=10)
"""A program may compile before it has made a few steps."""
_PATIENCE: Final = 3
_LONGEST: Final = 1.5
_WAITS: Final = 9
"""The lines over which the waiting of a process is judged."""
_USUAL: Final = 15
_RECENT: Final = 5
"""The lines that show the usual pace of a program and its present one, each by its median."""
_SLOW: Final = 2.0
_FAST_AGAIN: Final = 1.5
"""A program becomes slow above, and fast again below, so many times the usual time of a step."""
WINDOW: Final = timedelta(minutes=10)
"""The speed is the average over this time, if it has at least two lines."""
OUT_OF_ORDER: Final = timedelta(seconds=1)
"""A lower step within this time after the last line is a late line of another process."""


def time_of(training: SubJobTraining, step: int) -> datetime:
    """Return when a program made a step, or will make it; at the earliest `started`.

    The estimate assumes a constant speed between start, checkpoint and last progress line, and the
    average speed after that.
    """
    points = [(training.start_step, training.started)]
    if training.saved_step is not None and training.saved is not None:
        points.append((training.saved_step, training.saved))
    points.append((training.step, training.updated))
    for before, after in pairwise(points):
        if before[0] < after[0] and step <= after[0]:
            return _between(before, after, step)
    first, last = points[0], points[-1]
    if first[0] < last[0] < step:
        return _between(first, last, step)
    return first[1] if step <= first[0] else last[1]


def _between(first: tuple[int, datetime], last: tuple[int, datetime], step: int) -> datetime:
    """Return the time of a step by linear interpolation of two; at the earliest the first."""
    part = max(0.0, (step - first[0]) / (last[0] - first[0]))
    # The bound keeps the result of a far step in the range of datetime.
    return first[1] + (last[1] - first[1]) * min(part, 1000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The progress of a program; `samples` are (step, time), both rising.

    `paces` are the seconds of a step before each of the last lines, without those before which the
    program had announced something else, and `pace` is the least median of them so far: its usual
    pace. `slow_since`: since then the present one is far above it.
    """

    start_step: int
    started: datetime
    samples: tuple[tuple[int, datetime], ...]
    steps: int | None = None
    saved_step: int | None = None
    saved: datetime | None = None
    longest: timedelta = timedelta()
    resumed: datetime | None = None
    phase: str = ""
    waits: tuple[float, ...] = ()
    sampled: bool = False
    paces: tuple[float, ...] = ()
    pace: float | None = None
    slow_since: datetime | None = None
    metrics: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def slow(self) -> bool:
        """Return whether the program is far slower than usual."""
        return self.slow_since is not None

    @property
    def lines_in_doubt(self) -> int:
        """Return how many more lines show whether it is slow, and for whom; 0 at its usual pace."""
        limit = _SLOW * (self.pace or math.inf)
        last = list(takewhile(lambda each: each > limit, reversed(self.paces[-_RECENT:])))
        return 1 if self.slow else _RECENT // 2 + 1 - len(last) if last else 0

    @property
    def waited(self) -> float | None:
        """Return the usual part of the time that the process waits; None with too few lines.

        In the first lines the processes wait for the last one to start.
        """
        return median(self.waits) if len(self.waits) > _WAITS // 2 else None

    @property
    def usual(self) -> timedelta | None:
        """Return the median time between two lines with a new step; None without three."""
        if len(self.samples) < 3:
            return None
        gaps = sorted(after[1] - before[1] for before, after in pairwise(self.samples))
        return gaps[len(gaps) // 2]

    @property
    def patience(self) -> timedelta:
        """Return for how long the program may make no step.

        A pause that was longer than usual before may come again. After the last step, which a loop
        over a range counts as one less, a program evaluates, saves and ends.
        """
        is_last = self.steps is not None and self.last[0] >= self.steps - 1
        if self.usual is None or is_last:
            return _FIRST_PATIENCE
        return max(_LEAST_PATIENCE, _PATIENCE * self.usual, _LONGEST * self.longest)

    @property
    def last(self) -> tuple[int, datetime]:
        """Return the last step and its time."""
        return self.samples[-1]


def advance(track: Track | None, line: ProgressLine, *, now: datetime) -> Track:
    """Return the track with one more line."""
    time = min(line.time, now)
    if track is None:
        return _first_track(line, time)
    step, last = track.last
    time = max(time, last)
    if line.step < step:
        if time - last < OUT_OF_ORDER:
            return track
        return _restarted_track(track, _first_track(line, time))
    samples = track.samples
    if line.step > step:
        samples = (*samples, (line.step, time))[-MOST_LINES:]
        if not (track.phase or line.skipped):  # such a pause says nothing about the pace
            if time - last > track.patience:
                track = replace(track, resumed=time)
            if not line.after_stall:
                track = replace(track, longest=max(track.longest, time - last))
                seconds = (time - last).total_seconds() / (line.step - step)
                track = _with_pace(track, seconds, time=time)
    track = replace(
        track,
        samples=samples,
        phase="",
        waits=() if line.waited is None else (*track.waits, line.waited)[-_WAITS:],
        sampled=line.sampled,
        steps=line.steps if line.steps is not None else track.steps,
        metrics=dict(line.metrics) or track.metrics,
        url=line.url or track.url,
    )
    if line.saved is not None and line.saved != track.saved_step:
        # An older checkpoint than before: the newer one was deleted or is unreadable.
        track = replace(track, saved_step=line.saved, saved=_time_of_step(track, line.saved))
    return track


def _with_pace(track: Track, seconds: float, *, time: datetime) -> Track:
    """Return the track after a line whose steps took so long each."""
    paces = (*track.paces, seconds)[-_USUAL:]
    pace = track.pace
    if len(paces) == _USUAL:
        pace = min(pace or math.inf, median(paces))
    factor = _FAST_AGAIN if track.slow else _SLOW
    recent = paces[-_RECENT:]
    slow = bool(pace) and len(recent) == _RECENT and median(recent) > factor * (pace or 0.0)
    since = (track.slow_since or time) if slow else None
    return replace(track, paces=paces, pace=pace, slow_since=since)


def used_to_it(track: Track) -> Track:
    """Return the track of a training that waits for no single process, by its pace of today.

    A program that is slow for longer than the window has other work for good, such as longer
    sequences.
    """
    if track.slow_since is None or track.last[1] - track.slow_since < WINDOW:
        return track
    recent = track.paces[-_RECENT:]
    return replace(track, paces=recent, pace=median(recent), slow_since=None)


def pace_of(training: SubJobTraining) -> float | None:
    """Return the seconds of a step at the usual pace that the status has; None without one."""
    try:
        return 1 / float(training.usual)
    except (ValueError, ZeroDivisionError):
        return None


def training_of(track: Track, *, attempt: int, uid: str = "") -> SubJobTraining:
    """Return the training progress of a track."""
    step, updated = track.last
    return SubJobTraining(
        step=step,
        updated=updated,
        start_step=track.start_step,
        started=track.started,
        saved_step=track.saved_step,
        saved=track.saved,
        attempt=attempt,
        uid=uid,
        steps=track.steps,
        steps_per_second=1 / median(track.paces[-_RECENT:]) if track.slow else speed(track.samples),
        usual=f"{1 / track.pace:.3g}" if track.pace else "",
        slow=track.slow,
        metrics=track.metrics,
        url=track.url,
        phase=track.phase,
        waited=track.waited,
        resumed=track.resumed,
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


def _first_track(line: ProgressLine, time: datetime) -> Track:
    """Return the track of a program whose first line this is."""
    return Track(
        start_step=line.step,
        started=time,
        samples=((line.step, time),),
        steps=line.steps,
        saved_step=line.saved,
        saved=None if line.saved is None else time,
        metrics=dict(line.metrics),
        url=line.url,
    )


def _restarted_track(before: Track, after: Track) -> Track:
    """Return the track of a restarted program, with the checkpoint from which it resumed."""
    kept = before.saved_step
    if after.saved_step is None and kept is not None and kept <= after.start_step:
        after = replace(after, saved_step=kept, saved=after.started)
    return replace(after, steps=after.steps or before.steps)


def _time_of_step(track: Track, step: int) -> datetime:
    """Return when the program made a step, by the lines around it, at most the last one."""
    for before, after in pairwise(track.samples):
        if step <= after[0]:
            return _between(before, after, step)
    return track.last[1]


def latest_training(
    read: SubJobTraining | None, recorded: SubJobTraining | None
) -> SubJobTraining | None:
    """Return the progress that was read, else the recorded one.

    Progress without a checkpoint keeps the recorded checkpoint: a program that resumed and has not
    saved again would resume from it once more.
    """
    if read is None or not read.reported or recorded is None:
        return recorded or read
    if read.attempt < recorded.attempt:
        return recorded
    before = recorded.saved_step
    # A program that started at a step before the checkpoint did not resume from it.
    if read.saved_step is None and before is not None and before <= read.start_step:
        return replace(read, saved_step=before, saved=read.started)
    return read


LEAST_RESTART: Final = timedelta(minutes=2)
"""A restart waits so long, or three times the patience, since the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A sub-job whose program makes no steps, in two reads of its log.

    `since` is the time of its last step, `patience` how long a pause of it may last, `usual` the
    usual time between two of its lines; None: it has printed fewer than three.
    """

    since: datetime
    step: int
    attempt: int
    patience: timedelta
    usual: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """All stalls of a HyperJob by sub-job, and what its processes do; None: not read yet."""

    stalls: Mapping[str, Stall] = field(default_factory=dict)
    survey: Survey | None = None


LEAST: Final = 0.2
"""The part of the time that the others must wait longer than the slow one."""


@dataclass(frozen=True, slots=True)
class WaitShare:
    """The part of its time, from 0 to 1, that a process waits for others; None: its pod's first."""

    pod: Pod
    part: float
    rank: int | None = None


def straggler(waits: Sequence[WaitShare], *, steps_per_second: float | None) -> Straggler | None:
    """Return the process for which the others wait; None where no single one is slow."""
    if len(waits) < 2:
        return None
    least, *others = sorted(waits, key=lambda each: (each.part, each.pod.cluster, each.pod.name))
    part = median(each.part for each in others) - least.part
    if part < LEAST or others[0].part - least.part < part / 2:
        return None
    seconds = part / steps_per_second if steps_per_second else None
    return Straggler(
        cluster=least.pod.cluster,
        pod=least.pod.name,
        job=least.pod.job,
        rank=least.rank,
        part=f"{part:.2f}",
        seconds="" if seconds is None else f"{seconds:.3g}",
    )
