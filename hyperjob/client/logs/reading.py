"""Read logs of containers: the present ones through Karmada's cluster proxy, merged by time.

Of earlier attempts, whose pods and logs are deleted, the status keeps the last lines.
"""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hyperjob.client.errors import ClientError, words
from hyperjob.client.logs.choosing import (
    ContainerLog,
    Wanted,
    no_log,
    require_container,
    require_placed,
    require_ranks,
    require_task,
    sources,
)
from hyperjob.client.members import log_path, pods_of_all
from hyperjob.client.summary import Summary, choose
from hyperjob_core.api.lines import LogLine, is_for_controller
from hyperjob_core.api.status import ContainerFailure, JobStatus, Run
from hyperjob_core.api.wire import timestamp
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.logs import Log
from hyperjob_core.tasks import cancel
from hyperjob_engine.members.podfailures import order

MOST_LOGS: Final = 200
"""The number of logs that are read concurrently."""
_TAIL = 10
_MOST_TAIL: Final = 10_000
"""No more last lines of a log are searched for lines for people, unless so many are asked for."""

Line = tuple[ContainerLog, bytes]
Say = Callable[[str], None]
"""A function that prints a remark about a log or a pod that cannot be read."""


def tail_of(chosen: Sequence[ContainerLog], tail: int | None) -> dict[str, str]:
    """Return the parameter tailLines; without `tail` all lines of one log, few of several."""
    wanted = (-1 if len(chosen) == 1 else _TAIL) if tail is None else tail
    return {} if wanted < 0 else {"tailLines": str(wanted)}


class LogReader:
    """Reads logs; `say` gets the error of each log in `failed`, which could not be read.

    With `hides` it leaves out the lines for the controller, which `hidden` counts: of them no line
    counts among the last lines that a query asks for.
    """

    def __init__(self, kube: Kube, namespace: str, say: Say, *, hides: bool = False) -> None:
        self._kube = kube
        self._namespace = namespace
        self._hides = hides
        self.say = say
        self._logs: dict[ContainerLog, Log] = {}
        self.failed: set[ContainerLog] = set()
        self.hidden = 0

    async def read(
        self, source: ContainerLog, query: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a log that were not read before, each behind its time.

        With `follow` in the query they come until its end.
        """
        follows = query.get("follow") == "true"
        self.failed -= {source}
        try:
            if self._hides and "tailLines" in query and source not in self._logs:
                for line in await self._last(source, query):
                    yield line.raw
                if not follows:
                    return
            log = self._logs.get(source) or self._begin(source)
            async with aclosing((log.follow if follows else log.read)(query)) as batches:
                async for batch in batches:
                    for line in batch:
                        if self._hides and is_for_controller(line.text):
                            self.hidden += 1
                        else:
                            yield line.raw
        except KubeError as error:
            self.failed |= {source}
            self.say(f"{source.label}: {words(error)}")

    def _begin(self, source: ContainerLog) -> Log:
        path = log_path(source.cluster, self._namespace, source.pod)
        self._logs[source] = Log(self._kube, path, container=source.container)
        return self._logs[source]

    async def _last(self, source: ContainerLog, query: Mapping[str, str]) -> list[LogLine]:
        """Return as many last lines for people as the query asks for."""
        wanted = asked = int(query["tailLines"])
        present = {key: value for key, value in query.items() if key != "follow"}
        while True:
            log = self._begin(source)
            async with aclosing(log.read({**present, "tailLines": str(asked)})) as batches:
                lines = [line async for batch in batches for line in batch]
            shown = [n for n, line in enumerate(lines) if not is_for_controller(line.text)]
            if len(shown) >= wanted or len(lines) < asked or asked >= _MOST_TAIL:
                first = shown[-wanted:] if wanted else []
                self.hidden += len(lines) - (first or [0])[0] - len(first)
                log.position = log.position.elsewhere()  # earlier lines of that second stay away
                return [lines[number] for number in first]
            asked *= 4


_LINES_HELD = 500


@dataclass(slots=True)
class ChosenLogs:
    """The selected logs; `failed` after an error while reading pods or logs."""

    reader: LogReader
    chosen: Sequence[ContainerLog]
    params: Mapping[str, str]
    unread: bool

    @classmethod
    async def of(
        cls,
        kube: Kube,
        summary: Summary,
        wanted: Wanted,
        *,
        say: Say,
    ) -> "ChosenLogs":
        """Read the pods and choose the logs; ClientError when there is no log to read.

        `say` gets the reason for every log that cannot be read.
        """
        require_task(summary, wanted)
        jobs = require_placed(summary, wanted)
        pods, errors = await pods_of_all(kube, summary.namespace, jobs)
        require_container(pods, wanted)
        require_ranks(pods, wanted)
        chosen, left_out = sources(jobs, pods, wanted)
        for text in [f"{job}: {words(error)}" for job, error in errors.items()]:
            say(text)
        for text in left_out.values():
            say(text)
        if not chosen:
            raise no_log(summary, failed=bool(errors))
        params = {**wanted.query, **tail_of(chosen, wanted.tail)}
        reader = LogReader(kube, summary.namespace, say, hides=wanted.hides)
        return cls(reader, chosen, params, bool(errors))

    @property
    def failed(self) -> bool:
        """Return whether a pod or a log could not be read."""
        return self.unread or bool(self.reader.failed)

    async def lines(self) -> AsyncGenerator[Line, None]:
        """Yield the lines of all logs in the order of their times.

        A log that is longer than the held lines keeps its connection until its last line: of more
        than MOST_LOGS such logs, one part comes after the other.
        """
        tail = self.params.get("tailLines")
        ends = tail is not None and int(tail) <= _LINES_HELD
        size = len(self.chosen) if ends else MOST_LOGS
        if len(self.chosen) > size:
            self.reader.say(
                f"the lines of {size} logs at a time are in the order of their times, of"
                f" {len(self.chosen)} logs: choose a sub-job or ranks"
            )
        for start in range(0, len(self.chosen), size):
            async with aclosing(self._merged(self.chosen[start : start + size])) as lines:
                async for line in lines:
                    yield line

    async def _merged(self, chosen: Sequence[ContainerLog]) -> AsyncGenerator[Line, None]:
        """Yield the lines of logs by time; each log has a task, which reads ahead."""
        queues: list[asyncio.Queue[bytes | None]] = [asyncio.Queue(_LINES_HELD) for _ in chosen]
        tasks = [
            asyncio.create_task(self._fill(source, queue))
            for source, queue in zip(chosen, queues, strict=True)
        ]
        heads: list[tuple[int, int, bytes]] = []
        try:
            for number, queue in enumerate(queues):
                if (line := await queue.get()) is not None:
                    heads.append((LogLine.of(line).time, number, line))
            heapq.heapify(heads)
            while heads:
                time, number, line = heads[0]
                yield chosen[number], line
                following = await queues[number].get()
                if following is None:
                    heapq.heappop(heads)
                else:
                    # A line without a time stays behind the line before it.
                    heapq.heapreplace(
                        heads, (max(time, LogLine.of(following).time), number, following)
                    )
            await asyncio.gather(*tasks)
        finally:
            await cancel(tasks)

    async def _fill(self, source: ContainerLog, queue: "asyncio.Queue[bytes | None]") -> None:
        async with aclosing(self.reader.read(source, self.params)) as lines:
            async for line in lines:
                await queue.put(line)
        await queue.put(None)


_TOGETHER: Final = 60.0
"""Seconds between the ends of sub-jobs that count as one failure."""


@dataclass(frozen=True, slots=True)
class LastLines:
    """The last lines of a failed container; `label` is its cluster, pod and rank."""

    label: str
    text: str


def last_failure(summary: Summary) -> LastLines | None:
    """Return the last lines of the cause of the last failure; None if the status has none.

    A failure of a present attempt comes before those of attempts that are over. Of the sub-jobs
    that failed together with the last one, the first failure that follows from no other counts.
    """
    newest: dict[str, tuple[bool, str, Run, ContainerFailure]] = {}
    for job, run in _selected_runs(summary, Wanted()):
        if run.failure is not None and run.failure.message.strip():
            present = job.failure is not None and run.attempt + 1 == job.number
            newest[job.name] = present, run.end, run, run.failure
    if not newest:
        return None
    present, last, *_ = max(newest.values(), key=lambda each: each[:2])
    together = [
        (run, failure)
        for is_present, end, run, failure in newest.values()
        if (is_present or not present) and _seconds_between(end, last) <= _TOGETHER
    ]
    run, failure = min(together, key=lambda each: order(each[1]))
    rank = "" if failure.rank is None else f" (rank {failure.rank})"
    return LastLines(f"{_log_of(run).label}{rank}", failure.message.strip())


def _seconds_between(end: str, last: str) -> float:
    """Return the seconds between two times; none between unknown ones."""
    first, second = timestamp(end), timestamp(last)
    return abs((second - first).total_seconds()) if first and second else 0.0


def kept_lines(summary: Summary, wanted: Wanted) -> list[Line] | None:
    """Return the last lines of the containers that failed in the selected attempt.

    None without one, and for the present attempt of every selected sub-job, whose logs are there.
    ClientError where there are no lines; the text names the attempts that have some.
    """
    attempt = wanted.attempt
    if attempt is None or all(job.number == attempt for job in _selected_jobs(summary, wanted)):
        return None
    found = [
        (_log_of(run), line.encode())
        for job, run in _selected_runs(summary, wanted)
        if run.attempt + 1 == attempt and run.failure is not None
        for line in run.failure.message.splitlines()
    ]
    if not found:
        raise ClientError(_no_lines(summary, wanted, attempt))
    return [each for each in found if not (wanted.hides and is_for_controller(each[1]))]


def _no_lines(summary: Summary, wanted: Wanted, attempt: int) -> str:
    every = [run for _, run in _selected_runs(summary, wanted)]
    known = sorted({run.attempt + 1 for run in every if run.failure and run.failure.message})
    runs = [run for run in every if run.attempt + 1 == attempt]
    text = f"there are no last lines of attempt {attempt} of {summary.name}"
    if runs:
        text += f", which ended with reason {runs[-1].reason}"
    if known:
        return f"{text}; there are those of attempt {', '.join(map(str, known))}"
    return f"{text}: kubectl describe hj {summary.name} -n {summary.namespace}"


def _selected_jobs(summary: Summary, wanted: Wanted) -> list[JobStatus]:
    return choose(summary, wanted.jobs) if wanted.jobs else list(summary.jobs)


def _selected_runs(summary: Summary, wanted: Wanted) -> Iterator[tuple[JobStatus, Run]]:
    """Yield the selected runs that are over, and the present failure of an ended sub-job."""
    for job in _selected_jobs(summary, wanted):
        present = job.failed_run
        for run in (*job.history, *([present] if present is not None else [])):
            if wanted.cluster in (None, run.cluster) and _is_wanted(run.failure, wanted):
                yield job, run


def _is_wanted(failure: ContainerFailure | None, wanted: Wanted) -> bool:
    """Return whether a failed container is among those selected.

    A run without one belongs to no task, rank or container: it is wanted where none is named.
    """
    if failure is None:
        return not wanted.task and wanted.ranks is None and not wanted.container
    return (
        wanted.task in (None, "", failure.task)
        and wanted.container in (None, "", failure.container)
        and (wanted.ranks is None or failure.rank in wanted.ranks)
    )


def _log_of(run: Run) -> ContainerLog:
    assert run.failure is not None
    return ContainerLog(cluster=run.cluster, pod=run.failure.pod, container=run.failure.container)


_T = TypeVar("_T")


class Thinned(Generic[_T]):
    """At most `most` items, evenly chosen, and the last one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_T] = []
        self._last: list[_T] = []
        self._every = 1
        self._seen = 0

    def add(self, item: _T) -> None:
        """Add the next item."""
        if self._seen % self._every == 0:
            self._kept.append(item)
            if len(self._kept) >= self._most:
                self._kept = self._kept[::2]
                self._every *= 2
        self._last = [item]
        self._seen += 1

    @property
    def kept(self) -> list[_T]:
        """Return the items in their order."""
        late = bool(self._last) and self._kept[-1] is not self._last[0]
        return [*self._kept, *self._last] if late else [*self._kept]
