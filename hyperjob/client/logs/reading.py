"""Read logs through the cluster proxy, each queue of lines bounded."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from hyperjob.client.errors import words
from hyperjob.client.logs.choosing import Source
from hyperjob.client.members import log_path
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError

_TAIL = 10
_AHEAD = 8
_LINES_HELD = 500

Line = tuple[Source, bytes]
Say = Callable[[str], None]
"""Takes a remark about a log or a pod that cannot be read."""


def tail_of(chosen: Sequence[Source], tail: int | None) -> dict[str, str]:
    """Give the parameter for how many last lines to read; without `tail` few, of one log all."""
    wanted = (-1 if len(chosen) == 1 else _TAIL) if tail is None else tail
    return {} if wanted < 0 else {"tailLines": str(wanted)}


class Reader:
    """Reads logs of several containers; an error of one log goes to `say` and is counted."""

    def __init__(self, kube: Kube, namespace: str, say: Say) -> None:
        self._kube = kube
        self._namespace = namespace
        self._say = say
        self.failed = 0

    async def in_order(
        self, chosen: Sequence[Source], params: Mapping[str, str]
    ) -> AsyncGenerator[Line, None]:
        """Give one log after the other, the next few read ahead."""
        queues: list[asyncio.Queue[bytes | None]] = []
        tasks: list[asyncio.Task[None]] = []

        def start(source: Source) -> None:
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
            await end(tasks)

    async def read(self, source: Source, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Give the lines of one log to its end."""
        path = log_path(source.cluster, self._namespace, source.pod)
        chosen = {**params, "container": source.container}
        try:
            async with aclosing(self._kube.lines(path, params=chosen)) as lines:
                async for line in lines:
                    yield line
        except KubeError as error:
            self.failed += 1
            self._say(f"{source.label}: {words(error)}")

    async def _fill(
        self, source: Source, params: Mapping[str, str], queue: "asyncio.Queue[bytes | None]"
    ) -> None:
        async with aclosing(self.read(source, params)) as lines:
            async for line in lines:
                await queue.put(line)
        await queue.put(None)


async def end(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait until they are gone."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
