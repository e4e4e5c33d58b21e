"""Follow the logs of a HyperJob: of the pods that run now, and of pods that start later.

A change of the HyperJob makes the follower list pods again. Without such a change it lists the pods
of a sub-job only while one of its containers has not started, or has ended and may restart.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from hyperjob.client.errors import ClientError, words
from hyperjob.client.logs.choosing import (
    ContainerLog,
    Wanted,
    no_log,
    placed_jobs,
    require_container,
    require_task,
    sources,
)
from hyperjob.client.logs.reading import MOST_LOGS, Line, LogReader, Say, tail_of
from hyperjob.client.members import pods_of_all
from hyperjob.client.summary import Summary, choose, meant, read
from hyperjob_core.api.lines import LogLine, parse
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.reflector import states
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.tasks import cancel

_POLL_SECONDS = 2.0
_LINES_HELD = 500
_TAIL_FOR_STEP = 100


class Following:
    """The logs of a HyperJob, followed until the HyperJob or all selected sub-jobs have ended."""

    def __init__(
        self,
        kube: Kube,
        summary: Summary,
        wanted: Wanted,
        *,
        limit: int = MOST_LOGS,
        say: Say,
    ) -> None:
        self._kube = kube
        self._summary = summary
        self._wanted = wanted
        self._limit = limit
        self._say_it = say
        self.reader = LogReader(kube, summary.namespace, self._say, hides=wanted.hides)
        self._lines: asyncio.Queue[Line] = asyncio.Queue(_LINES_HELD)
        self._changed = asyncio.Event()
        self._gone = False
        self._first = True
        self._seen: dict[str, JobStatus] = {}  # the sub-jobs at the last look
        # Sub-jobs whose pods the next look lists again without a change of the sub-job.
        self._unsettled: set[str] = set()
        # Every log that was ever read, by its pod and container, in its latest run; a log that is
        # read now has a pump, which removes itself at the end of the log.
        self._followed: dict[ContainerLog, ContainerLog] = {}
        self._params: dict[ContainerLog, Mapping[str, str]] = {}
        self._pumps: dict[ContainerLog, asyncio.Task[None]] = {}
        self._told: set[str] = set()  # the remarks that were printed
        self._unread: set[str] = set()  # sub-jobs whose pods could not be listed last

    @property
    def failed(self) -> bool:
        """Return whether a log, or the pods of a sub-job, could not be read to the end."""
        return bool(self.reader.failed or self._unread)

    async def lines(self) -> AsyncGenerator[Line, None]:
        """Yield lines of all logs as they arrive; ClientError when no log could be read at all."""
        producing = asyncio.create_task(self._produce())
        try:
            while not (producing.done() and self._lines.empty()):
                getting = asyncio.create_task(self._lines.get())
                await asyncio.wait({getting, producing}, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    yield getting.result()
                else:
                    await cancel([getting])
                while not self._lines.empty():
                    yield self._lines.get_nowait()
            await producing
        finally:
            await cancel([producing])

    async def _produce(self) -> None:
        """Watch the HyperJob and discover containers until no container can start any more."""
        observing = asyncio.create_task(self._observe())
        discovering = asyncio.create_task(self._discover())
        try:
            await asyncio.wait({observing, discovering}, return_when=asyncio.FIRST_COMPLETED)
            if observing.done():
                observing.result()
            await discovering
        finally:
            await cancel([observing, discovering, *self._pumps.values()])

    async def _observe(self) -> None:
        name, namespace = self._summary.name, self._summary.namespace
        async with aclosing(states(self._kube, HYPERJOBS, name, namespace=namespace)) as stream:
            async for hyperjob in stream:
                if hyperjob is None:
                    self._gone = True
                else:
                    self._summary = read(hyperjob)
                self._changed.set()
                if self._gone:
                    return

    async def _discover(self) -> None:
        """Discover started containers until no other can start and all logs have ended."""
        choose(self._summary, self._wanted.jobs if self._summary.jobs else ())
        require_task(self._summary, self._wanted)
        over = False
        while not over:
            self._changed.clear()
            over = self._is_over()
            if not self._gone:
                await self._look()
            if not over:
                await self._until_changed()
        await asyncio.gather(*self._pumps.values())
        if not self._followed:
            raise no_log(self._summary, failed=bool(self._unread))

    def _is_over(self) -> bool:
        """Return whether no selected sub-job can have another pod."""
        if self._gone or self._summary.has_ended:
            return True
        jobs = meant(self._summary, self._wanted.jobs)
        return bool(jobs) and all(job.phase == JobPhase.COMPLETED for job in jobs)

    async def _until_changed(self) -> None:
        try:
            async with asyncio.timeout(_POLL_SECONDS if self._unsettled else None):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _look(self) -> None:
        """List the pods of sub-jobs that changed, and follow the containers that have started."""
        first, self._first = self._first, False
        placed = placed_jobs(self._summary, self._wanted)
        jobs = [
            job for job in placed if self._seen.get(job.name) != job or job.name in self._unsettled
        ]
        self._seen = {job.name: job for job in placed}
        # A log that ends after this line marks its sub-job for another list of its pods.
        self._unsettled = set()
        pods, errors = await pods_of_all(self._kube, self._summary.namespace, jobs)
        if not self._followed:
            require_container(pods, self._wanted)
        for name, error in errors.items():
            self._say(f"{name}: {words(error)}")
        self._unread = (self._unread - pods.keys()) | errors.keys()
        found, left_out = sources(jobs, pods, self._wanted)
        for text in left_out.values():
            self._say(text)
        self._follow([source for source in found if self._has_more(source)], first=first)
        if not self._followed:
            self._say(str(no_log(self._summary, failed=False)))
        self._unsettled |= {source.job for source in left_out} | errors.keys()
        self._unsettled |= {
            source.job for source in found if not source.final and source not in self._pumps
        }

    def _has_more(self, source: ContainerLog) -> bool:
        """Return whether a log that is not being followed has lines that were not read."""
        if source in self._pumps:
            return False
        read = self._followed.get(source)
        if read is None or not source.is_run_of(read):
            return True
        return source.running and source not in self.reader.failed

    def _follow(self, fresh: Sequence[ContainerLog], *, first: bool) -> None:
        """Begin to read logs, as many as the limit leaves room for.

        Raises ClientError where the first look already finds more.
        """
        room = max(0, self._limit - len(self._pumps))
        if len(fresh) > room:
            many = (
                f"{len(self._pumps) + len(fresh)} logs to follow, of which only {self._limit} are"
                " followed: choose with --job, --cluster or --task"
            )
            if first:
                raise ClientError(many)
            self._say(many)
        # The logs of containers that start later are read from their first line.
        tail = tail_of(fresh, self._wanted.tail) if first else {}
        params = {**self._wanted.query, "follow": "true", **tail}
        for source in fresh[:room]:
            read = self._followed.get(source)
            if read is None or not source.is_run_of(read):
                self._params[source] = params
            self._followed[source] = source
            self._pumps[source] = asyncio.create_task(self._pump(source, self._params[source]))

    async def _pump(self, source: ContainerLog, params: Mapping[str, str]) -> None:
        try:
            async with aclosing(self.reader.read(source, params)) as lines:
                async for line in lines:
                    await self._lines.put((source, line))
        finally:
            # The kubelet may restart the container.
            del self._pumps[source]
            self._unsettled.add(source.job)
            self._changed.set()

    def _say(self, text: str) -> None:
        """Print a remark, unless it has been printed before."""
        if text not in self._told:
            self._told.add(text)
            self._say_it(text)


async def prints_step(kube: Kube, summary: Summary, step: int) -> bool:
    """Follow the logs until a program reports the step or a later one; return whether one did.

    A user who may not read logs waits for the status alone: no error is raised for them.
    """
    following = Following(kube, summary, Wanted(tail=_TAIL_FOR_STEP), say=lambda _text: None)
    try:
        async with aclosing(following.lines()) as lines:
            async for _, raw in lines:
                line = parse(LogLine.of(raw))
                if line is not None and line.step >= step:
                    return True
    except (ClientError, KubeError):
        return False
    return False
