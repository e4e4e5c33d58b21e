"""The table of HyperJobs that `get` prints."""

from collections.abc import Sequence
from datetime import datetime

from hyperjob.cli.kubectl.styles import phase
from hyperjob.client.durations import age
from hyperjob.client.summary import Summary
from hyperjob.client.training import goodput_of
from hyperjob.table import Row
from hyperjob_core.text import shortened

_COLUMNS = (
    "NAME",
    "STATUS",
    "JOBS",
    "RUNNING",
    "PROGRESS",
    "CLUSTERS",
    "RESTARTS",
    "REASON",
    "AGE",
)
_WIDE = ("GOODPUT", "QUEUE", "ARGUMENTS", "URL", "MESSAGE")
_NOTHING = "-"
_ARGUMENTS_SHOWN = 40
_MESSAGE_SHOWN = (
    80  # the width that remains on one line of a terminal; `why` prints the whole message
)


def header(*, wide: bool = False, namespaces: bool = False) -> Sequence[str]:
    """Return the column headers."""
    return (*(("NAMESPACE",) if namespaces else ()), *_COLUMNS, *(_WIDE if wide else ()))


def row(summary: Summary, now: datetime, *, wide: bool = False, namespaces: bool = False) -> Row:
    """Return the cells of a HyperJob's row."""
    training = summary.training
    shown = phase("Terminating" if summary.deleting else summary.phase, summary.reason)
    cells: Row = (
        summary.name,
        shown,
        summary.jobs_ready,
        summary.running_text,
        (training.progress if training is not None else "") or _NOTHING,
        ",".join(summary.clusters) or _NOTHING,
        str(summary.restarts),
        summary.reason or _NOTHING,
        age(summary.created, now),
    )
    goodput = goodput_of(summary.goodput, training, now)
    url = training.url if training is not None else ""
    spent = _NOTHING if goodput is None else goodput.percent
    message = shortened(summary.message, _MESSAGE_SHOWN) or _NOTHING
    words = shortened(summary.arguments, _ARGUMENTS_SHOWN) or _NOTHING
    more = (spent, summary.queue or _NOTHING, words, url or _NOTHING, message)
    return (
        *((summary.namespace,) if namespaces else ()),
        *cells,
        *(more if wide else ()),
    )
