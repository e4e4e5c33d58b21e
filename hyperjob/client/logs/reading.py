"""Read logs of containers through Karmada's cluster proxy."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from hyperjob.client.errors import words
from hyperjob.client.logs.choosing import ContainerLog
from hyperjob.client.members import log_path
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.logs import Log

MOST_LOGS: Final = 200
"""The number of logs that are read concurrently."""
_TAIL = 10

Line = tuple[ContainerLog, bytes]
Say = Callable[[str], None]
"""A function that prints a remark about a log or a pod that cannot be read."""


def tail_of(chosen: Sequence[ContainerLog], tail: int | None) -> dict[str, str]:
    """Return the parameter tailLines; without `tail` all lines of one log, few of several."""
    wanted = (-1 if len(chosen) == 1 else _TAIL) if tail is None else tail
    return {} if wanted < 0 else {"tailLines": str(wanted)}


class LogReader:
    """Reads logs; `say` gets the error of each log in `failed`, which could not be read."""

    def __init__(self, kube: Kube, namespace: str, say: Say) -> None:
        self._kube = kube
        self._namespace = namespace
        self.say = say
        self._logs: dict[ContainerLog, Log] = {}
        self.failed: set[ContainerLog] = set()

    async def read(
        self, source: ContainerLog, query: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a log that were not read before; with `follow` until its end."""
        log = self._logs.get(source)
        if log is None:
            path = log_path(source.cluster, self._namespace, source.pod)
            log = Log(self._kube, path, container=source.container)
            self._logs[source] = log
        timed, self.failed = "timestamps" in query, self.failed - {source}
        read = log.follow if query.get("follow") == "true" else log.read
        try:
            async with aclosing(read(query)) as batches:
                async for batch in batches:
                    for line in batch:
                        yield line.raw if timed else line.text
        except KubeError as error:
            self.failed |= {source}
            self.say(f"{source.label}: {words(error)}")
