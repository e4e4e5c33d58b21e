"""The table of HyperJobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hyperjob.ui.rows import Row
from hyperjob_core.text import shortened

_MESSAGE = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A HyperJob in the table; `place` of `length` in its queue, 0 when it does not wait."""

    key: str
    namespace: str
    name: str
    phase: str
    reason: str
    message: str
    ready: str
    clusters: Sequence[str]
    queues: Sequence[tuple[str, int]]
    waits_in: str
    place: int
    length: int
    accelerators: Sequence[tuple[str, int]]
    restarts: int
    created: str
    deleting: bool
    progress: str
    percent: int | None


def line_of(row: Row, *, place: int, length: int, colours: Mapping[str, int]) -> JobLine:
    """Return the line of a HyperJob."""
    summary = row.summary
    return JobLine(
        key=row.key,
        namespace=summary.namespace,
        name=summary.name,
        phase=summary.phase,
        reason=summary.reason,
        message=shortened(summary.message, _MESSAGE),
        ready=summary.jobs_ready,
        clusters=summary.clusters,
        queues=[(queue, colours.get(queue, -1)) for queue in row.queues],
        waits_in=row.waits_in,
        place=place,
        length=length,
        accelerators=sorted(row.accelerators.items()),
        restarts=summary.restarts,
        created=summary.created,
        deleting=bool(summary.deleting),
        progress=row.progress.text if row.progress is not None else "",
        percent=row.progress.percent if row.progress is not None else None,
    )
