"""The present logs of a HyperJob, one container after the other."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from hyperjob.client.errors import words
from hyperjob.client.logs.choosing import (
    ContainerLog,
    Wanted,
    no_log,
    require_container,
    require_placed,
    require_task,
    sources,
)
from hyperjob.client.logs.reading import Line, LogReader, Say, tail_of
from hyperjob.client.members import pods_of_all
from hyperjob.client.summary import Summary
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.tasks import cancel

_AHEAD = 8
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
        query: Mapping[str, str],
        tail: int | None,
        say: Say,
    ) -> "ChosenLogs":
        """Read the pods and choose the logs; ClientError when there is no log to read.

        `say` gets the reason for every log that cannot be read.
        """
        require_task(summary, wanted)
        jobs = require_placed(summary, wanted)
        pods, errors = await pods_of_all(kube, summary.namespace, jobs)
        require_container(pods, wanted)
        chosen, left_out = sources(jobs, pods, wanted)
        for text in [f"{job}: {words(error)}" for job, error in errors.items()]:
            say(text)
        for text in left_out.values():
            say(text)
        if not chosen:
            raise no_log(summary, failed=bool(errors))
        params = {**query, **tail_of(chosen, tail)}
        return cls(LogReader(kube, summary.namespace, say), chosen, params, bool(errors))

    @property
    def failed(self) -> bool:
        """Return whether a pod or a log could not be read."""
        return self.unread or bool(self.reader.failed)

    async def lines(self) -> AsyncGenerator[Line, None]:
        """Yield the lines of one log after the other, while reading the next few logs ahead."""
        queues: list[asyncio.Queue[bytes | None]] = []
        tasks: list[asyncio.Task[None]] = []
        try:
            for position, source in enumerate(self.chosen):
                for later in self.chosen[len(queues) : position + _AHEAD]:
                    queues.append(asyncio.Queue(_LINES_HELD))
                    tasks.append(asyncio.create_task(self._fill(later, queues[-1])))
                while (line := await queues[position].get()) is not None:
                    yield source, line
                await tasks[position]
        finally:
            await cancel(tasks)

    async def in_order(self) -> AsyncGenerator[Line, None]:
        """Yield the lines of all logs, which must have timestamps, in the order of their times."""
        queues: list[asyncio.Queue[bytes | None]] = [
            asyncio.Queue(_LINES_HELD) for _ in self.chosen
        ]
        tasks = [
            asyncio.create_task(self._fill(source, queue))
            for source, queue in zip(self.chosen, queues, strict=True)
        ]
        heads: list[tuple[int, int, bytes]] = []
        try:
            for number, queue in enumerate(queues):
                if (line := await queue.get()) is not None:
                    heads.append((LogLine.of(line).time, number, line))
            heapq.heapify(heads)
            while heads:
                time, number, line = heads[0]
                yield self.chosen[number], line
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
