"""The metrics of a HyperJob as curves, from the progress lines in the logs of its pods.

The page reads the logs with the visitor's own rights at each request, and keeps nothing of them.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Final

from aiohttp import web

from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.standing import ChosenLogs
from hyperjob.client.summary import Summary, read
from hyperjob.client.thinning import Thinned
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_engine.model.training import OUT_OF_ORDER, parse
from hyperjob_page.charts.curves import Axis, ProgressLine, ProgressPoint, Scale, charts
from hyperjob_page.pages.logs import errors_told, ranks_of
from hyperjob_page.render import mark, render

_LOGS: Final = 8
_TAIL: Final = 5_000
_BYTES: Final = 32 * 2**20
_SECONDS: Final = 10.0
_POINTS: Final = 400
_LINES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsChoice:
    """The ranks whose logs to read, the first ones if there are none, the axis and the scale."""

    ranks: tuple[int, ...] = ()
    axis: Axis = "step"
    scale: Scale = "linear"

    @classmethod
    def of(cls, request: web.Request) -> "MetricsChoice":
        """Parse the parameters of a request; invalid values count as absent."""
        return cls(
            ranks=tuple(ranks_of(request.query.get("rank", ""))),
            axis="time" if request.query.get("axis") == "time" else "step",
            scale="log" if request.query.get("scale") == "log" else "linear",
        )


async def curves(kube: Kube, namespace: str, name: str, choice: MetricsChoice) -> str:
    """Return the curves of a HyperJob as HTML; raises KubeError where it cannot be read."""
    summary = read(await kube.get(HYPERJOBS, name, namespace=namespace))
    lines, remarks = await progress_of(kube, summary, choice.ranks)
    text = str(
        render(
            "parts/curves.html",
            charts=charts(lines, choice.axis, choice.scale),
            lines=lines,
            axis=choice.axis,
            remarks=remarks,
        )
    )
    return str(render("parts/metrics.html", html=text, mark=mark(text)))


async def progress_of(
    kube: Kube, summary: Summary, ranks: Sequence[int]
) -> tuple[list[ProgressLine], list[str]]:
    """Return the progress of each rank and attempt that has a log, and remarks about the others.

    At most 8 logs are read, each from its last 5,000 lines on, for 10 s and 32 MiB together.
    """
    lines, remarks = _Lines(), list[str]()
    with errors_told(remarks.append):
        await _read_present(kube, summary, ranks, lines, remarks)
    return lines.found, remarks


class _Lines:
    """Lines by name, each with a bounded number of points; points come in the order of a log."""

    def __init__(self) -> None:
        self._kept: dict[str, Thinned[ProgressPoint]] = {}
        self._last: dict[str, ProgressPoint] = {}

    def add(self, who: str, attempt: int, line: LogLine) -> None:
        """Add a line of a log; without a progress line in it nothing."""
        found = parse(line)
        if found is None:
            return
        name = f"{who}, attempt {attempt}"
        metrics = {metric: float(text) for metric, text in found.metrics.items()}
        point = ProgressPoint(found.step, found.time, metrics)
        before = self._last.get(name)
        # Several processes of a pod print into one log: their lines may change places.
        if before is not None and before.at and point.at and point.step < before.step:  # noqa: SIM102
            if point.at - before.at < OUT_OF_ORDER:
                return
        self._last[name] = point
        self._kept.setdefault(name, Thinned(_POINTS)).add(point)

    @property
    def found(self) -> list[ProgressLine]:
        """Return the first lines, each rank and attempt once."""
        return [ProgressLine(name, each.kept) for name, each in islice(self._kept.items(), _LINES)]


async def _read_present(
    kube: Kube, summary: Summary, ranks: Sequence[int], lines: _Lines, remarks: list[str]
) -> None:
    """Read the logs of the present pods."""
    attempts = {job.name: job.number for job in summary.jobs}
    left = _BYTES
    try:
        async with asyncio.timeout(_SECONDS):
            wanted = Wanted(ranks=frozenset(ranks) or None)
            logs = await ChosenLogs.of(kube, summary, wanted, tail=_TAIL, say=remarks.append)
            if len(logs.chosen) > _LOGS:
                remarks.append(f"{_LOGS} of {len(logs.chosen)} logs are read: choose ranks")
                logs.chosen = logs.chosen[:_LOGS]
            async with aclosing(logs.lines()) as found:
                async for source, raw in found:
                    left -= len(raw)
                    if left < 0:
                        remarks.append(f"the rest after {_BYTES / 2**20:g} MiB is not read")
                        break
                    who = _who(source.rank, source.pod)
                    lines.add(who, attempts.get(source.job, 1), LogLine.of(raw))
    except TimeoutError:
        remarks.append(f"the rest after {_SECONDS:g} s is not read")


def _who(rank: int | None, pod: str) -> str:
    return pod if rank is None else f"rank {rank}"
