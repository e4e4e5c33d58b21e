"""Read the progress lines of HyperJobs that a visitor looks at, with the visitor's own rights.

The status has one point of each reading interval of the controller; the log has them all. A visitor
without the right to read logs sees the points of the status alone.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.standing import ChosenLogs
from hyperjob.client.summary import Summary
from hyperjob.client.thinning import Thinned
from hyperjob.client.waiting import silent
from hyperjob.ui.history.points import POINTS, ProgressPoint
from hyperjob.ui.history.recorder import History
from hyperjob.ui.rows import Row
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.tasks import cancel
from hyperjob_engine.model.training import parse

_PAUSE_SECONDS: Final = 5.0
_READ_SECONDS: Final = 20.0
_LINES: Final = 20_000
_AT_ONCE: Final = 4
_WAITING: Final = 32
_KNOWN: Final = 1024
_OVERLAP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Known:
    """The last read of a HyperJob: the version of its row, None after a failure, and its begin.

    `whole` is the begin of the last read without a failure, from which the next one continues.
    """

    version: Hashable
    at: float
    whole: float | None = None


class LogProgress:
    """Reads into the history, at most every 5 seconds for each HyperJob, and four at a time."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def look(self, kube: Kube, rows: Sequence[Row], *, seconds: float = 0) -> None:
        """Begin to read the logs of HyperJobs with new progress, and wait so long for the lines.

        A failed read is repeated, with the rights of the visitor who looks next.
        """
        begun = [task for row in rows if (task := self._begin(kube, row)) is not None]
        if begun and seconds:
            await asyncio.wait(begun, timeout=seconds)

    async def close(self, _: object = None) -> None:
        """End all reads."""
        await cancel(self._tasks.values())

    def _begin(self, kube: Kube, row: Row) -> "asyncio.Task[None] | None":
        """Return the task that reads a HyperJob's log, also a new one if due; None without."""
        uid = row.summary.uid
        if uid in self._tasks:
            return self._tasks[uid]
        known, now = self._known.get(uid), time.monotonic()
        if not row.progress or len(self._tasks) >= _WAITING:
            return None
        if known is not None and (known.version == row.version or now - known.at < _PAUSE_SECONDS):
            return None
        before = None if known is None else known.whole
        since = None if before is None else now - before + _OVERLAP_SECONDS
        self._known[uid] = _Known(row.version, now, before)
        self._known.move_to_end(uid)
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        task = self._tasks[uid] = asyncio.create_task(self._read(kube, row.summary, since))
        task.add_done_callback(lambda _: self._tasks.pop(uid, None))
        return task

    async def _read(self, kube: Kube, summary: Summary, since: float | None) -> None:
        """Read the log, of the last `since` seconds or whole, into the history."""
        query = {"timestamps": "true"}
        if since is not None:
            query["sinceSeconds"] = str(round(since))
        found: list[ProgressPoint] = []
        failed = True
        with contextlib.suppress(ClientError, KubeError, TimeoutError):  # the status has its points
            async with self._places, asyncio.timeout(_READ_SECONDS):
                found, failed = await _points(kube, summary, query)
        if (known := self._known.get(summary.uid)) is not None:
            changed = replace(known, version=None) if failed else replace(known, whole=known.at)
            self._known[summary.uid] = changed
        if found:
            self._history.progressed(datetime.now(UTC), summary.uid, found)


async def _points(
    kube: Kube, summary: Summary, query: dict[str, str]
) -> tuple[list[ProgressPoint], bool]:
    """Return the progress in the log of rank 0, or of the first pod where pods have no ranks.

    Return too whether the log could not be read to its end.
    """
    if not summary.jobs:
        return [], False
    try:
        chosen = await _chosen_logs(kube, summary, query, Wanted(ranks=frozenset({0})))
    except ClientError:
        chosen = await _chosen_logs(kube, summary, query, Wanted(jobs=[summary.jobs[0].name]))
    chosen.chosen = chosen.chosen[:1]
    found = Thinned[ProgressPoint](POINTS)
    async with aclosing(chosen.lines()) as lines:
        async for _, raw in lines:
            if (line := parse(LogLine.of(raw))) is not None:
                metrics = {name: float(text) for name, text in line.metrics.items()}
                found.add(ProgressPoint(line.time, line.step, metrics))
    return found.kept, chosen.failed


async def _chosen_logs(
    kube: Kube, summary: Summary, query: dict[str, str], wanted: Wanted
) -> ChosenLogs:
    return await ChosenLogs.of(kube, summary, wanted, query=query, tail=_LINES, say=silent)
