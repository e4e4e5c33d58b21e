"""Lines of logs, and the rows of the progress that programs report in them. Pure."""

from dataclasses import dataclass
from datetime import datetime

from hyperjob.client.logs.choosing import ContainerLog
from hyperjob_core.api.lines import LogLine as Line
from hyperjob_engine.model.training import ProgressLine

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
