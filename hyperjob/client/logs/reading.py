"""Read logs of containers through Karmada's cluster proxy."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from hyperjob.client.errors import words
from hyperjob.client.logs.choosing import ContainerLog
from hyperjob.client.members import log_path
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.logs import Log
from hyperjob_engine.model.training import is_for_controller

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
