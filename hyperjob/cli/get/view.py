"""The table of HyperJobs: what `get` shows."""

from collections.abc import Sequence
from datetime import datetime

from hyperjob.cli.kubectl.styles import phase
from hyperjob.cli.kubectl.table import Row
from hyperjob.client.durations import age
from hyperjob.client.summary import Summary

_COLUMNS = ("NAME", "STATUS", "JOBS", "RUNNING", "CLUSTERS", "RESTARTS", "REASON", "AGE")
_WIDE = ("QUEUE", "MESSAGE")
_NOTHING = "-"


def header(*, wide: bool = False, namespaces: bool = False) -> Sequence[str]:
    """Give the titles of the columns."""
    return (*(("NAMESPACE",) if namespaces else ()), *_COLUMNS, *(_WIDE if wide else ()))


def row(summary: Summary, now: datetime, *, wide: bool = False, namespaces: bool = False) -> Row:
    """Give the cells of a HyperJob."""
    shown = phase("Terminating" if summary.deleting else summary.phase)
    cells: Row = (
        summary.name,
        shown,
        summary.jobs_ready,
        str(summary.running_pods),
        ",".join(summary.clusters) or _NOTHING,
        str(summary.restarts),
        summary.reason or _NOTHING,
        age(summary.created, now),
    )
    more = (summary.queue or _NOTHING, summary.message or _NOTHING)
    return (
        *((summary.namespace,) if namespaces else ()),
        *cells,
        *(more if wide else ()),
    )
