"""The watch of a sub-job's log: its pods, which of them reports progress, the next read. No I/O.

Volcano names a pod by its vcjob, task and index: the controller needs no list of pods. A watch has
a bounded size for any log. Its reads become rarer while the log has no progress line.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from hyperjob_controller.training.schedule import Lane
from hyperjob_core.api.lines import LogLine, Position, announced, progress_lines
from hyperjob_core.api.meta import Object
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.api.wire import at, count, mapping, objects, string, string_map, strings
from hyperjob_engine.model.observed import Observed, Ownership
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.model.training import Stall, Track, WaitShare, advance, pace_of, training_of
from hyperjob_engine.reasons.stacks import Pod, Stack, is_stack, parse_stack

LIMIT_BYTES: Final = 256 * 1024
"""The bytes of a log in one read."""
_TAIL: Final = 100
_TAILS: Final = (10, 10_000)
_LONGEST: Final = 300.0
_SEARCH_SECONDS: Final = 2.0
_CYCLE_SECONDS: Final = 2.0
_LONGEST_CYCLE: Final = 900.0
_CYCLE_GROWTH: Final = 1.5
"""A first line is read at most half as late as its program took to print it."""
_LOADING_SECONDS: Final = 5.0
_MISSES: Final = 3
_SECOND_LOOK: Final = 1.5
"""The second look at a silence is due after so many times the patience."""
_LEAST_LOOK: Final = timedelta(seconds=5)
_AFTER_DUE: Final = 1.0
"""Seconds for a line of a watchdog to arrive in the log."""
_PROCESSES: Final = 64
_BUSY_PATIENCES: Final = 6
"""A program whose stacks change does something: it counts as stalled only after so long."""
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_PEERS: Final = 16
"""The pods of a stopping sub-job that are followed at least."""
_LOOKED: Final = 256
"""The pods of a stopping sub-job that are searched at most for the reporting pod."""
_READ = frozenset({JobPhase.RUNNING, JobPhase.COMPLETING, JobPhase.TERMINATING, JobPhase.ABORTING})


@dataclass(frozen=True, slots=True)
class LoggedTask:
    """The pods of one task of a vcjob, and the container whose log the controller reads."""

    name: str
    container: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One attempt of a sub-job.

    `created`: lines before it are those of an earlier vcjob. `since`: when it began to run.
    `leaving`: it is being stopped. `ended`: its log is complete. `deleted`: its vcjob is gone, and
    its pods may still save: what is known of it comes from the status.
    `recorded` is the progress in the status, if it is of the same vcjob: a suspended sub-job gets
    a new vcjob.
    """

    name: str
    uid: str
    attempt: int
    namespace: str
    cluster: str
    tasks: tuple[LoggedTask, ...]
    created: datetime | None = None
    since: datetime | None = None
    leaving: bool = False
    ended: bool = False
    deleted: bool = False
    recorded: SubJobTraining | None = None

    @property
    def first(self) -> int:
        """Return the number of tasks with pods."""
        return sum(task.replicas > 0 for task in self.tasks)

    @property
    def size(self) -> int:
        """Return the number of all pods."""
        return sum(task.replicas for task in self.tasks)

    def pod(self, number: int) -> tuple[Pod, str]:
        """Return a pod and its container: the first of each task, then the second, ..."""
        index = 0
        while True:
            alive = [task for task in self.tasks if task.replicas > index]
            if number < len(alive):
                task = alive[number]
                name = f"{self.name}-{task.name}-{index}"
                return Pod(self.cluster, name, self.name, task.name), task.container
            if not alive:
                raise IndexError(number)
            number -= len(alive)
            index += 1


class Doing(StrEnum):
    """What the reader does with a log at present."""

    NOTHING = "nothing"
    WAITING = "waiting for a place"
    READING = "reading"
    FOLLOWING = "following"


@dataclass(slots=True, kw_only=True)
class Watch:
    """The watch of one sub-job; `number` is the pod to read next: the reporting one if `found`.

    `others`: another sub-job of the HyperJob reports, and the search covers only the first pod of
    each task. `silent` counts reads without progress since the last line, `cycles` the searches,
    `missed` the reads of a reporting pod that did not exist. `phase` is what a program announced
    before its first progress line. `looked` is the time of the last read, `fresh` of the last one
    that no step came before: no step is older. `lag` is the least age of a last step that a read
    has seen, by which the clock of the node is behind at most. `doubted` is the first look at a
    silence that is too long, `stalled` whether a second one confirmed it, `stacks` what each
    process printed meanwhile, by the number of its pod and its pid.
    `ends` is when the sub-job was seen to have ended. `followed`: the logs of a stopping sub-job
    are open. `saved` has the last checkpoint that each other pod of it has reported, by the number
    of the pod.
    """

    source: Source
    track: Track | None = None
    number: int = 0
    found: bool = False
    others: bool = False
    position: Position = field(default_factory=Position)
    tail: int = _TAIL
    silent: int = 0
    cycles: int = 0
    missed: int = 0
    phase: str = ""
    looked: datetime | None = None
    fresh: datetime | None = None
    lag: timedelta = timedelta(days=1)
    doubted: datetime | None = None
    stalled: bool = False
    stacks: dict[tuple[int, int], list[Stack]] = field(default_factory=dict)
    ends: datetime | None = None
    followed: bool = False
    ended: bool = False
    saved: dict[int, tuple[int, datetime]] = field(default_factory=dict)
    doing: Doing = Doing.NOTHING

    @property
    def training(self) -> SubJobTraining:
        """Return the progress of the program, which is not `reported` before a progress line."""
        if self.track is None:
            moment = datetime.min.replace(tzinfo=UTC)
            training = SubJobTraining(
                step=0, updated=moment, start_step=0, started=moment, phase=self.phase,
                attempt=self.source.attempt, reported=False,
            )  # fmt: skip
        else:
            training = training_of(self.track, attempt=self.source.attempt, uid=self.source.uid)
            training = self._saved_by_all(training)
        return replace(training, ends=self.ends, followed=self.followed, ended=self.ended)

    @property
    def stall(self) -> Stall | None:
        """Return the stall of the program that two looks have seen; None without one."""
        if not self.stalled or self.track is None or self.source.leaving or self.source.ended:
            return None
        return Stall(
            since=self._last_sign(),
            step=self.track.last[0],
            attempt=self.source.attempt,
            patience=self.track.patience,
            usual=self.track.usual,
        )

    def peers(self) -> tuple[list[int], list[int]]:
        """Return the pods of a stopping sub-job to follow, and those to follow if they report.

        All that report have saved the same step, or one of the first is behind: the others matter
        while no pod is known to report.
        """
        first, others = range(self.source.size)[:_PEERS], range(self.source.size)[_PEERS:_LOOKED]
        if not self.found:
            return [*first], [*others]
        return sorted({self.number, *first}), []

    def hear(self, number: int, lines: Sequence[LogLine], *, now: datetime) -> bool:
        """Take in lines of a pod of a stopping sub-job; return whether its progress is new.

        The first pod that reports has the progress, and each other one its last checkpoint.
        """
        if not self.found:
            self.number, before = number, self.number
            if not self.take_in(lines, now=now):
                self.number = before
            return self.found
        if number == self.number:
            return self.take_in(lines, now=now)
        for line in progress_lines(self._of_this_run(lines)):
            if line.saved is not None:
                self.saved[number] = line.saved, line.time
        return False

    def _saved_by_all(self, training: SubJobTraining) -> SubJobTraining:
        """Return the progress with the last checkpoint that all pods have that report one."""
        if not self.saved:
            return training
        known = list(self.saved.values())
        if training.saved_step is not None and training.saved is not None:
            known.append((training.saved_step, training.saved))
        step, time = min(known)
        return replace(training, saved_step=step, saved=time)

    def _of_this_run(self, lines: Sequence[LogLine]) -> Sequence[LogLine]:
        """Return the lines since the vcjob was created: an earlier pod of this name may stop."""
        created = self.source.created
        if created is None:
            return lines
        return [each for each in lines if each.time and each.moment >= created]

    @property
    def wait(self) -> WaitShare | None:
        """Return how long the reporting process waits for others; None if it does not report it.

        A part that it has not measured itself counts once the training has become slow.
        """
        if self.track is None or self.track.waited is None or not self.found:
            return None
        if self.track.sampled and not self.track.slow:
            return None
        return WaitShare(self.source.pod(self.number)[0], self.track.waited)

    @property
    def lane(self) -> Lane:
        """Return the purpose of the next read."""
        if self.source.leaving:
            return Lane.LAST
        return Lane.REPORT if self.found or self.source.ended else Lane.SEARCH

    @property
    def following(self) -> bool:
        """Return whether the log is being followed to its end."""
        return self.doing is Doing.FOLLOWING

    def query(self) -> dict[str, str]:
        """Return the query parameters of the next read, beside those of its position."""
        return {"tailLines": str(self.tail), "limitBytes": str(LIMIT_BYTES)}

    def read_log(
        self, lines: Sequence[LogLine], *, position: Position, size: int, now: datetime
    ) -> bool:
        """Process the fresh lines of a read of `size` bytes; return whether they have progress.

        `position` is behind them. Without a track the next read begins with the last lines again.
        """
        whole = len(lines) >= self.tail
        progressed = self.take_in(lines, began_before=whole, now=now)
        self.position = Position() if self.track is None else position
        self._judge(now)
        self.missed = 0
        self.silent = 0 if progressed else self.silent + 1
        least, most = _TAILS
        if size >= LIMIT_BYTES:  # its end, the newest lines, was cut off
            self.tail = max(least, self.tail // 4)
        elif whole and not progressed:
            self.tail = min(most, self.tail * 4)
        if not self.found:
            self._go_on()
        return progressed

    def take_in(
        self, lines: Sequence[LogLine], *, now: datetime, began_before: bool = False
    ) -> bool:
        """Advance the track; return whether the lines have progress.

        `began_before`: the program may have reported before these lines, since it began to run.
        """
        lines = self._of_this_run(lines)
        progress, phases = progress_lines(lines), announced(lines)
        step = self.track.last[0] if self.track is not None else None
        for line in progress:
            while phases and phases[0][0] < line.time:  # of one instant, the phase comes last
                self._announce(phases.pop(0)[1])
            first = self.track is None
            line = replace(line, after_stall=self.stalled)
            self.track = advance(self.track, line, now=now)
            self.stalled = self.stalled and self.track.last[0] == step
            if first and began_before and self.source.since is not None:
                started = min(self.track.started, self.source.since)
                self.track = replace(self.track, started=started)
        for _, phase in phases:
            self._announce(phase)
        if self.track is not None and self.track.last[0] != step:
            self.fresh, self.doubted, self.stalled, self.stacks = self.looked, None, False, {}
        self._collect(lines)
        self.found = self.found or bool(progress or phases)
        return bool(progress or phases)

    def miss(self) -> None:
        """Process a read of a pod that does not exist or has not started."""
        self.missed += 1
        if not self.found or self.missed >= _MISSES:
            self.missed, self.found = 0, False
            self._go_on()

    def pause(self, interval: float, *, due: float = 0.0) -> float:
        """Return the seconds until the next read, at the usual pace at least `interval`.

        A slow program is compared with others of its HyperJob again after `due` seconds.
        """
        if self.found and self.track is not None:
            samples = self.track.samples
            if len(samples) < 2:
                return min(interval, 5.0) * 2.0 ** min(self.silent, 6)
            gap = (samples[-1][1] - samples[0][1]).total_seconds() / (len(samples) - 1)
            longest = max(interval, _LONGEST)
            doublings = 0 if self.stalled else min(self.silent, 10)
            usual = min(longest, max(interval, gap) * 2.0**doublings)
            early = min(self._until_look(), self._until_lines(self.track, due))
            return min(usual, max(min(interval, 1.0), early))
        if self.found:  # it has announced that it loads
            return min(interval, _LOADING_SECONDS)
        if self.number:
            return min(interval, _SEARCH_SECONDS)
        least = min(interval, _CYCLE_SECONDS)
        return min(_LONGEST_CYCLE, least * _CYCLE_GROWTH ** min(self.cycles, 20))

    def _announce(self, phase: str) -> None:
        if self.track is None:
            self.phase = phase
        else:
            self.track = replace(self.track, phase=phase)
            self.doubted, self.stalled = None, False

    def _collect(self, lines: Sequence[LogLine]) -> None:
        """Keep the last two stacks of each process since its last step."""
        pod, _ = self.source.pod(self.number)
        last = self.track.last[1] if self.track is not None else None
        for line in lines:
            if last is None or not is_stack(line.raw) or line.moment < last:
                continue
            if (found := parse_stack(line.raw, pod=pod)) is not None:
                process = self.number, found.pid
                if process in self.stacks or len(self.stacks) < _PROCESSES:
                    self.stacks[process] = [*self.stacks.get(process, ())[-1:], found]

    def _judge(self, now: datetime) -> None:
        """Look at the silence of the program; the second look at the same one confirms a stall."""
        self.looked = now
        if self.track is None or self.track.phase or self.stalled:
            return
        silence, patience = now - self._last_sign(), self.track.patience
        self.lag = min(self.lag, now - self.track.last[1])
        if silence < patience:
            self.doubted = None
        elif self.doubted is None:
            self.doubted = now
        elif now - self.doubted >= _LEAST_LOOK:
            busy = any(each[0].frames != each[-1].frames for each in self.stacks.values())
            self.stalled = not busy or silence > _BUSY_PATIENCES * patience

    def _last_sign(self) -> datetime:
        """Return the earliest time at which the last step may have been: a clock may be behind."""
        assert self.track is not None
        last = self.track.last[1]
        return last if self.fresh is None else max(last, self.fresh)

    def _until_look(self) -> float:
        """Return the seconds to the next look at a silence that is longer than usual."""
        if self.track is None or self.looked is None or self.track.phase or self.stalled:
            return math.inf
        since, patience = self._last_sign(), self.track.patience
        usual = max(_LEAST_LOOK, self.track.usual or patience)
        if not self.silent and self.looked - self.track.last[1] - self.lag <= usual:
            return math.inf
        due = since + patience
        if self.doubted is not None:
            due = max(since + patience * _SECOND_LOOK, self.doubted + _LEAST_LOOK)
            if self.looked >= due:
                due = max(since + patience * _BUSY_PATIENCES, self.looked + _LEAST_LOOK)
        return max(0.0, (due - self.looked).total_seconds()) + _AFTER_DUE

    def _until_lines(self, track: Track, due: float) -> float:
        """Return the seconds until lines show whether the program is slow, and for whom."""
        if not track.lines_in_doubt:
            return math.inf
        seconds = (track.samples[-1][1] - track.samples[-2][1]).total_seconds()
        return max(due, seconds * track.lines_in_doubt * 2.0 ** min(self.silent, 10)) + _AFTER_DUE

    def _go_on(self) -> None:
        """Go on to the next pod, whose log is read from its last lines."""
        self.number += 1
        if self.number >= (self.source.first if self.others else self.source.size):
            self.number, self.cycles = 0, self.cycles + 1
        self.tail = _TAIL
        self.position = self.position.elsewhere()


def watch(source: Source) -> Watch:
    """Return a watch of a sub-job, which starts from the progress in the status."""
    made = Watch(source=source)
    recorded = source.recorded
    if recorded is not None:
        made.track = Track(
            start_step=recorded.start_step, started=recorded.started,
            samples=((recorded.step, recorded.updated),),
            saved_step=recorded.saved_step, saved=recorded.saved, pace=pace_of(recorded),
        )  # fmt: skip
        made.position = Position.after(recorded.updated)
    return made


def sources_of(observed: Observed) -> Iterator[Source]:
    """Yield the sub-jobs whose programs run, are being stopped, or have ended."""
    stopping = strings(at(observed.hyperjob.status, "stop", "jobs"))
    for name, record in observed.hyperjob.records.items():
        child = child_of(observed, name)
        job = child.job
        if job is None and name in stopping:
            yield from _deleted(observed, record)
        if job is None or job.ownership is not Ownership.OURS:
            continue
        cluster = (child.binding and child.binding.cluster) or child.cluster or record.cluster
        leaving = job.deleting or name in stopping
        if not cluster or not (leaving or child.is_terminal or child.phase in _READ):
            continue
        recorded = record.training
        yield Source(
            name=name,
            uid=job.uid,
            attempt=job.attempt,
            namespace=observed.hyperjob.namespace,
            cluster=cluster,
            tasks=tuple(_tasks(job.spec)),
            created=job.created,
            since=child.report.since if child.report is not None else None,
            leaving=leaving,
            ended=child.is_terminal and not leaving,
            recorded=recorded if recorded is not None and recorded.uid == job.uid else None,
        )


def _deleted(observed: Observed, record: JobStatus) -> Iterator[Source]:
    """Yield a stopped sub-job whose vcjob is gone: another controller may have begun to read it."""
    runs, hyperjob, training = record.history, observed.hyperjob, record.training
    cluster, attempt = record.cluster, record.attempt
    if not cluster and runs:
        cluster, attempt = runs[-1].cluster, runs[-1].attempt
    groups = (each for each in hyperjob.replicated_jobs if each.name == record.replicated_job)
    group = next(groups, None)
    if not cluster or group is None:
        return
    same = training if training is not None and training.attempt == attempt else None
    yield Source(
        name=record.name,
        uid=same.uid if same is not None else "",
        attempt=attempt,
        namespace=hyperjob.namespace,
        cluster=cluster,
        tasks=tuple(_tasks(group.template)),
        leaving=True,
        deleted=True,
        recorded=same,
    )


def _tasks(spec: Object) -> Iterator[LoggedTask]:
    for task in objects(spec.get("tasks")):
        template = mapping(task.get("template"))
        names = [string(item.get("name")) for item in objects(at(template, "spec", "containers"))]
        default = string_map(at(template, "metadata", "annotations")).get(_DEFAULT_CONTAINER, "")
        if names and string(task.get("name")):
            container = default if default in names else names[0]
            yield LoggedTask(string(task.get("name")), container, count(task.get("replicas", 1)))
