"""The present logs of a HyperJob, one container after the other."""

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
from hyperjob_core.kube.client import Kube


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
        return self.unread or self.reader.failed > 0

    async def lines(self) -> AsyncGenerator[Line, None]:
        """Yield the lines in the order of the logs."""
        async with aclosing(self.reader.in_order(self.chosen, self.params)) as lines:
            async for line in lines:
                yield line
