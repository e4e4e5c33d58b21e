"""Read logs through Karmada's cluster proxy into bounded queues of lines."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from hyperjob.client.errors import words
from hyperjob.client.logs.choosing import ContainerLog
from hyperjob.client.members import log_path
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, Unavailable
from hyperjob_core.tasks import cancel

_TAIL = 10
_AHEAD = 8
_LINES_HELD = 500
_TRIES = 5
_PAUSE_SECONDS = 0.5
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?= )")

Line = tuple[ContainerLog, bytes]
Say = Callable[[str], None]
"""A function that prints a remark about a log or a pod that cannot be read."""


def tail_of(chosen: Sequence[ContainerLog], tail: int | None) -> dict[str, str]:
    """Return the parameter tailLines; without `tail` all lines of one log, few of several."""
    wanted = (-1 if len(chosen) == 1 else _TAIL) if tail is None else tail
    return {} if wanted < 0 else {"tailLines": str(wanted)}


class LogReader:
    """Reads logs of several containers; `say` gets the error of each log that fails."""

    def __init__(self, kube: Kube, namespace: str, say: Say) -> None:
        self._kube = kube
        self._namespace = namespace
        self._say = say
        self.failed = 0

    async def in_order(
        self, chosen: Sequence[ContainerLog], params: Mapping[str, str]
    ) -> AsyncGenerator[Line, None]:
        """Yield the lines of one log after the other, while reading the next few logs ahead."""
        queues: list[asyncio.Queue[bytes | None]] = []
        tasks: list[asyncio.Task[None]] = []

        def start(source: ContainerLog) -> None:
            queue: asyncio.Queue[bytes | None] = asyncio.Queue(_LINES_HELD)
            queues.append(queue)
            tasks.append(asyncio.create_task(self._fill(source, params, queue)))

        try:
            for position, source in enumerate(chosen):
                for later in chosen[len(queues) : position + _AHEAD]:
                    start(later)
                while (line := await queues[position].get()) is not None:
                    yield source, line
                await tasks[position]
        finally:
            await cancel(tasks)

    async def read(
        self, source: ContainerLog, params: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of one log until its end."""
        chosen = {**params, "container": source.container}
        try:
            if chosen.get("follow") == "true":
                lines = self._followed(source, chosen)
            else:
                lines = self._kube.lines(self._path(source), params=chosen)
            async with aclosing(lines):
                async for line in lines:
                    yield line
        except KubeError as error:
            self.failed += 1
            self._say(f"{source.label}: {words(error)}")

    async def _followed(
        self, source: ContainerLog, params: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a log as they arrive; after a broken connection, continue.

        The timestamp of the last line is the `sinceTime` of the next request, whose answer repeats
        the lines of that second.
        """
        last, same = b"", 0
        failures = 0
        chosen = {**params, "timestamps": "true"}
        while True:
            boundary, read = last, same
            try:
                stream = self._kube.lines(self._path(source), params=chosen)
                async with aclosing(stream) as lines:
                    async for line in lines:
                        failures = 0
                        time = _time_of(line)
                        if boundary and time and (time < boundary or (time == boundary and read)):
                            read -= time == boundary
                            continue
                        if time:
                            same = same + 1 if time == last else 1
                            last = time
                        yield line if "timestamps" in params or not time else line[len(time) + 1 :]
            except Unavailable as error:
                failures += 1
                if failures >= _TRIES or not (last or error.answered):
                    raise
            else:
                return
            await asyncio.sleep(_PAUSE_SECONDS * failures)
            if last:
                chosen = {**chosen, "sinceTime": last.decode()}
                chosen.pop("tailLines", None)
                chosen.pop("sinceSeconds", None)

    def _path(self, source: ContainerLog) -> str:
        return log_path(source.cluster, self._namespace, source.pod)

    async def _fill(
        self, source: ContainerLog, params: Mapping[str, str], queue: "asyncio.Queue[bytes | None]"
    ) -> None:
        async with aclosing(self.read(source, params)) as lines:
            async for line in lines:
                await queue.put(line)
        await queue.put(None)


def _time_of(line: bytes) -> bytes:
    """Return the time at the start of a line, empty where there is none."""
    found = _TIME.match(line)
    return found[0] if found else b""
