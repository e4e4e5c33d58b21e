"""A HyperJob of an API server, for asyncio; the lines of its logs and the rows of its metrics."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from hyperjob.client import requests
from hyperjob.client.logs.choosing import ContainerLog, Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.logs.reading import ChosenLogs, Thinned, kept_lines, last_failure
from hyperjob.client.reading import Target, event_time, events_of
from hyperjob.client.summary import Summary
from hyperjob.client.waiting import Goal, Progress, not_found, parse_goal, reach, silent
from hyperjob.client.why.evidence import Explanation, gather
from hyperjob.client.why.explain import explain
from hyperjob.sdk.errors import HyperJobError, NeverReachedError, translated
from hyperjob.sdk.parameters import Above0, Rank, require_types
from hyperjob.sdk.template import require_whole
from hyperjob.sdk.view import Axis, Connection, JobView, LastRead, Screen, drawn
from hyperjob_core.api.lines import LogLine as Line
from hyperjob_core.api.lines import ProgressLine, parse
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Conflict, KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.tasks import cancel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, float | datetime]
"""A progress line as a row of a table."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a container's log.

    `time` is when the container wrote it, None where the kubelet sent none; `rank` is that of the
    pod in its HyperJob, None without ranks.
    """

    cluster: str
    pod: str
    container: str
    text: str
    time: datetime | None = None
    rank: int | None = None

    def __str__(self) -> str:
        """Return the line behind its time, its cluster and its pod or rank."""
        when = f"{self.time:%H:%M:%S} " if self.time else ""
        return f"{when}{self.cluster}/{self.pod if self.rank is None else self.rank} {self.text}"


def row_of(source: ContainerLog, found: ProgressLine) -> Row:
    """Return a progress line as a row of a table."""
    given = {"rank": source.rank, "steps": found.steps, "saved": found.saved}
    return {
        "time": found.time,
        "step": found.step,
        **{key: value for key, value in given.items() if value is not None},
        **{name: float(text) for name, text in found.metrics.items()},
    }


def line_of(source: ContainerLog, raw: bytes) -> LogLine:
    """Return a line of a log that begins with its time."""
    line = Line.of(raw)
    return LogLine(
        source.cluster,
        source.pod,
        source.container,
        line.text.decode(errors="replace"),
        line.moment if line.time else None,
        source.rank,
    )


_LOG_TYPES: Final[Mapping[str, Any]] = {
    "job": str | Sequence[str],
    "cluster": str | None,
    "task": str | None,
    "rank": Rank | Sequence[Rank] | None,
    "tail": Annotated[int, Field(ge=-1)] | None,
    "since": Above0 | None,
    "search": str | None,
    "attempt": Annotated[int, Field(ge=1)] | None,
}


class Event(dict[str, Any]):
    """An Event as the API server has it."""

    def __repr__(self) -> str:
        words = (event_time(self), self.get("type"), self.get("reason"), self.get("message"))
        return f"<{' '.join(str(word) for word in words if word)}>"


class AsyncJob(JobView):
    """A HyperJob of an API server."""

    def __init__(self, client: Connection, hyperjob: Object) -> None:
        super().__init__(LastRead(hyperjob, client.page))
        self._client = client

    async def refresh(self) -> Summary:
        """Read the HyperJob again; raise NotFoundError after its deletion."""
        with translated():
            found = await self._target.get()
        return self._take(found)

    async def wait(
        self,
        state: str = "Completed",
        *,
        timeout: float = 0,
        progress: Progress = silent,
        show: bool = False,
    ) -> Summary:
        """Wait until the HyperJob is in a phase such as Running; `delete` waits for its deletion.

        `timeout` is in seconds, 0 is no limit. `progress` gets a line after each change; `show`
        shows a bar and a table of the sub-jobs, which follow the changes, in terminals and
        notebooks. Raise NotReachedError when time is up, NeverReachedError when the HyperJob cannot
        reach the state, also when it is too large for all clusters or its queue for 15 seconds.
        Ctrl-C ends the wait; the HyperJob keeps running.
        """
        if timeout < 0:
            raise ValueError(f"timeout={timeout!r}: expected seconds, and 0 for no limit")
        goal: Goal = parse_goal(state if state == "delete" or "=" in state else f"phase={state}")
        reaching = self._reached(reach(self._target, goal, seconds=timeout, progress=progress))
        if not show:
            return await reaching
        with Screen() as screen:
            showing = asyncio.create_task(self._shown(screen))
            try:
                return await reaching
            finally:
                await cancel([showing])
                screen.update(self.status)

    async def watch(self) -> AsyncIterator[Summary]:
        """Yield the status now and after each change, until the HyperJob ends or is deleted."""
        uid = self.raw["metadata"].get("uid")
        with translated():
            async with aclosing(self._target.states()) as found:
                async for hyperjob in found:
                    if hyperjob is None or hyperjob["metadata"]["uid"] != uid:
                        return  # a new HyperJob of this name is another one
                    summary = self._take(hyperjob)
                    yield summary
                    if summary.has_ended:
                        return

    async def logs(
        self,
        *,
        follow: bool = False,
        job: str | Sequence[str] = (),
        cluster: str | None = None,
        task: str | None = None,
        rank: int | Sequence[int] | None = None,
        tail: int | None = None,
        since: float | None = None,
        search: str | None = None,
        previous: bool = False,
        attempt: int | None = None,
    ) -> AsyncIterator[LogLine]:
        """Yield the lines of the pods' logs from all clusters, in the order of their times.

        `rank` selects pods by their ranks. `tail` is the number of last lines of each container,
        -1 for all: by default 10, or all of a single container. `since` is in seconds before now.
        `search` is a regular expression that a line must contain. With `follow`, yield new lines as
        they come, also of pods that start later, until the HyperJob has ended. `previous` yields
        the logs of containers from before their last restart. `attempt`, from 1,
        selects an attempt: after its end the status has the last lines of its failed containers,
        such as a traceback.
        """
        require_types(_LOG_TYPES, locals())
        if follow and previous:
            raise ValueError("logs: give follow or previous, not both")
        ranks = None if rank is None else frozenset([rank] if isinstance(rank, int) else rank)
        jobs = (job,) if isinstance(job, str) else tuple(job)
        wanted = Wanted(
            jobs=jobs,
            cluster=cluster,
            task=task,
            ranks=ranks,
            attempt=attempt,
            tail=tail,
            since=since,
            previous=previous,
        )
        contains = _pattern(search)
        summary = await self.refresh()
        with translated():
            kept = kept_lines(summary, wanted)
            for container, raw in kept or ():
                if contains.search(text := raw.decode()):
                    yield LogLine(container.cluster, container.pod, container.container, text)
            if kept is not None:
                return
            found = (
                Following(self._kube, summary, wanted, say=silent)
                if follow
                else await ChosenLogs.of(self._kube, summary, wanted, say=silent)
            )
            async with aclosing(found.lines()) as lines:
                async for container, raw in lines:
                    line = line_of(container, raw)
                    if contains.search(line.text):
                        yield line
        await self._read_again()

    async def metrics(self, *, most: int = 5000) -> list[Row]:
        """Return the progress that the logs of its pods have, in the order of time.

        A row has `time`, `step`, `rank`, the metrics by their names, and `steps` and `saved` where
        the program reports them: pandas.DataFrame and polars.DataFrame take the rows. Of more than
        `most` progress lines the rows are evenly chosen, and the last one is always there. The logs
        of pods before the last restart of their sub-job are gone.
        """
        require_whole("most", most, least=2)
        found = Thinned[Row](most)
        summary = await self.refresh()
        with translated():
            standing = await ChosenLogs.of(self._kube, summary, Wanted(tail=-1), say=silent)
            async with aclosing(standing.lines()) as lines:
                async for container, raw in lines:
                    if (line := parse(Line.of(raw))) is not None:
                        found.add(row_of(container, line))
        return found.kept

    async def plot(self, *metrics: str, axis: Axis = "step", ax: "Axes | None" = None) -> "Figure":
        """Draw metrics over steps, or over time, with matplotlib; return the figure.

        Without names it draws every metric. `ax` draws onto axes of another figure, such as those
        of another HyperJob: `other.plot("loss", ax=job.plot("loss").axes[0])`.
        """
        return drawn(await self.metrics(), metrics, name=self.name, axis=axis, ax=ax)

    async def why(self) -> Explanation:
        """Explain why the HyperJob is not running: a headline, and causes with a next step."""
        with translated():
            evidence = await gather(self._kube, self.namespace, self.name)
        return explain(evidence)

    async def events(self) -> list[Event]:
        """Return the Events of the HyperJob from the API server, the last one last."""
        with translated():
            found = await events_of(self._kube, self.raw)
            if isinstance(found, KubeError):
                raise found
        return [Event(each) for each in sorted(found, key=event_time)]

    async def suspend(self, *, wait: bool = True, timeout: float = 0) -> Summary:
        """Remove its pods from all clusters; the HyperJob stays. `wait` waits for the removal."""
        return await self._switch(on=True, wait=wait, timeout=timeout)

    async def resume(self, *, wait: bool = True, timeout: float = 0) -> Summary:
        """Resume the HyperJob; `wait` waits until it runs."""
        return await self._switch(on=False, wait=wait, timeout=timeout)

    async def restart(self, *job: str, wait: bool = True, timeout: float = 0) -> Summary:
        """Restart these sub-jobs, or all of them; `wait` waits until they run."""
        return await self._ask(requests.restart(job), wait=wait, timeout=timeout)

    async def migrate(
        self, *job: str, cluster: str | None = None, wait: bool = True, timeout: float = 0
    ) -> Summary:
        """Move these sub-jobs, or those on `cluster`, to others; `wait` waits until they run."""
        return await self._ask(requests.migrate(job, cluster=cluster), wait=wait, timeout=timeout)

    async def delete(self, *, wait: bool = True, timeout: float = 0) -> None:
        """Delete the HyperJob and its objects in all clusters; `wait` waits for the deletion.

        Raise NotFoundError after its deletion, also where another HyperJob has its name.
        """
        uid = self.raw["metadata"].get("uid")
        with translated():
            try:
                await self._kube.delete(HYPERJOBS, self.name, namespace=self.namespace, uid=uid)
            except Conflict:  # another UID
                raise not_found(self.name) from None
            if wait:
                await reach(self._target, parse_goal("delete"), seconds=timeout, uid=uid)

    @property
    def _kube(self) -> Kube:
        return self._client.kube

    @property
    def _target(self) -> Target:
        return Target(self._kube, self.namespace, self.name)

    def _take(self, hyperjob: Object | None) -> Summary:
        """Keep the object that was read; None, after the deletion, keeps the one before."""
        self.reading.raw = hyperjob or self.raw
        return self.status

    async def _read_again(self) -> None:
        with contextlib.suppress(HyperJobError):
            await self.refresh()

    async def _reached(self, reaching: Awaitable[Object | None]) -> Summary:
        """Await a state of the HyperJob; without success its status is read again."""
        try:
            with translated():
                found = await reaching
        except NeverReachedError as error:
            await self._read_again()
            raise NeverReachedError("\n".join((str(error), *self._last_words()))) from None
        except HyperJobError:
            await self._read_again()
            raise
        return self._take(found)

    async def _shown(self, screen: Screen) -> None:
        with contextlib.suppress(HyperJobError):
            async for summary in self.watch():
                screen.update(summary)

    def _last_words(self) -> list[str]:
        """Return the last lines of the last failed container, such as a traceback."""
        found = last_failure(self.status)
        return [] if found is None else [f"The last lines of pod {found.label}:", found.text]

    async def _switch(self, *, on: bool, wait: bool, timeout: float) -> Summary:
        with translated():
            changed, _ = await requests.suspend(self._target, on=on)
        self._take(changed)
        if not wait:
            return self.status
        goal = parse_goal("phase=Suspended" if on else "phase=Running,Completed")
        return await self._reached(reach(self._target, goal, seconds=timeout))

    async def _ask(self, request: requests.RequestKind, *, wait: bool, timeout: float) -> Summary:
        async def answered() -> Object | None:
            asked = await requests.ask(self._target, request)
            found = await requests.taken(self._target, request, asked)
            if wait:
                found = await requests.running_again(self._target, asked, seconds=timeout)
            return found

        return await self._reached(answered())


def _pattern(search: str | None) -> re.Pattern[str]:
    """Compile the regular expression of a search; raise ValueError."""
    try:
        return re.compile(search or "")
    except re.error as error:
        raise ValueError(
            f"search={search!r} is no regular expression: {error}; re.escape makes one of any text"
        ) from None
