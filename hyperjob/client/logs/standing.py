"""The present logs of a HyperJob, merged by the times of their lines."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType

from hyperjob.client.errors import words
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
from hyperjob.client.logs.reading import MOST_LOGS, Line, LogReader, Say, tail_of
from hyperjob.client.members import pods_of_all
from hyperjob.client.summary import Summary
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.tasks import cancel

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
        tail: int | None,
        query: Mapping[str, str] = MappingProxyType({}),
        say: Say,
        hides: bool = False,
    ) -> "ChosenLogs":
        """Read the pods and choose the logs; ClientError when there is no log to read.

        `say` gets the reason for every log that cannot be read. `hides`: see LogReader.
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
        params = {**query, **tail_of(chosen, tail)}
        reader = LogReader(kube, summary.namespace, say, hides=hides)
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
