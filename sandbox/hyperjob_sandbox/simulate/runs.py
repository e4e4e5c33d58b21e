"""The work of each job: it progresses while enough sub-jobs run, and a stop loses some work."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from hyperjob_sandbox.simulate.history import Life, Segment


@dataclass(slots=True)
class SubJob:
    """A vcjob of a job; `running` while its pods train, at the `speed` of its nodes."""

    cluster: str = ""
    devices: int = 0
    speed: float = 1.0
    running: bool = False
    own: bool = False  # the sub-job has its own duration


@dataclass(slots=True)
class Run:
    """The progress of a job.

    `done` are the seconds of its work up to the time `since`, from which on it works at `rate`: the
    speed of its slowest node with all sub-jobs, of which `whole` are the usual number. It works
    while at least `minimum` of them run, None for all of them; `expected` is their number in the
    status. `timer` ends the work at the
    present rate. `broken` has the causes of the sub-jobs, by vcjob, that failed and do not run
    again yet.
    """

    life: Life
    minimum: int | None
    whole: int | None = None
    expected: int = 0
    done: float = 0.0
    since: float = 0.0
    rate: float = 0.0
    jobs: dict[str, SubJob] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None
    finished: bool = False

    @property
    def counted(self) -> list[SubJob]:
        """Return the sub-jobs that count for the job's work."""
        return [job for job in self.jobs.values() if not job.own]


class Runs:
    """All jobs that have not ended; calls `finished` with each job that has done its work."""

    def __init__(
        self,
        *,
        checkpoint: float,
        time: Callable[[], float],
        finished: Callable[[str], None],
    ) -> None:
        self._checkpoint = checkpoint
        self._time = time
        self._finished = finished
        self._runs: dict[str, Run] = {}

    @property
    def any_progress(self) -> bool:
        """Return whether any job progresses."""
        return any(run.rate for run in self._runs.values())

    def begin(self, life: Life, *, minimum: int | None, whole: int | None = None) -> None:
        """Add a job; `whole` is its usual number of sub-jobs, None: as many as it has."""
        self._runs[life.job.key] = Run(life, minimum, whole)

    def get(self, key: str) -> Run | None:
        """Return the run of a job; None after its end."""
        return self._runs.get(key)

    def end(self, key: str) -> None:
        """Remove a job."""
        run = self._runs.pop(key, None)
        if run is not None:
            self._set_rate(run, 0.0)

    def update(self, key: str, *, cause: str = "") -> None:
        """Update the rate of a job after a change of its sub-jobs.

        A job that works no longer loses the work since its last checkpoint; `cause` is the reason.
        """
        run = self._runs.get(key)
        if run is None or run.finished:
            return
        jobs = run.counted
        speeds = [job.speed for job in jobs if job.running]
        running = len(speeds)
        wanted = max(run.expected, len(jobs))
        least = wanted if run.minimum is None else min(run.minimum, wanted)
        rate = min(speeds) * running / (run.whole or wanted) if running >= max(1, least) else 0.0
        was = run.rate
        self._set_rate(run, rate)
        if was and not rate:
            self._stop(run, cause or "other")

    def take_back(self, key: str, cause: str) -> None:
        """Let a job go on from its last checkpoint that was stopped before its end was known."""
        run = self._runs.get(key)
        if run is not None and run.finished:
            run.finished = False
            self._stop(run, cause)

    def _set_rate(self, run: Run, rate: float) -> None:
        """Account the work up to now, record the devices in use, and set the end of the work."""
        now = self._time()
        run.done += run.rate * (now - run.since)
        run.since, life = now, run.life
        if run.rate and life.segments:
            life.segments[-1].end = now
        if rate:
            if life.started is None:
                life.started = now
            devices: dict[str, int] = {}
            for job in run.counted:
                if job.running:
                    devices[job.cluster] = devices.get(job.cluster, 0) + job.devices
            if not run.rate or devices != life.segments[-1].devices:
                life.segments.append(Segment(now, now, devices))
        if rate != run.rate or run.timer is None:
            run.rate = rate
            if run.timer is not None:
                run.timer.cancel()
                run.timer = None
            if rate:
                left = max(0.0, life.job.duration - run.done) / rate
                loop = asyncio.get_running_loop()
                run.timer = loop.call_later(left, self._done, life.job.key)

    def _stop(self, run: Run, cause: str) -> None:
        """Count the work since the last checkpoint as lost."""
        kept = run.done // self._checkpoint * self._checkpoint if self._checkpoint else run.done
        lost = max(0.0, run.done - kept)
        run.done = min(kept, run.done)
        run.life.lost += lost * run.life.job.gpus
        run.life.stops[cause] = run.life.stops.get(cause, 0) + 1

    def _done(self, key: str) -> None:
        run = self._runs.get(key)
        if run is not None and not run.finished:
            self._set_rate(run, 0.0)
            run.finished = True
            self._finished(key)
