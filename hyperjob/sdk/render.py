"""Tables of a HyperJob for notebooks and terminals."""

from markupsafe import Markup

from hyperjob.client.summary import Summary
from hyperjob_core.text import printable

_COLUMNS = ("Sub-job", "Cluster", "Phase", "Attempt", "Pods", "Message")


def rows_of(summary: Summary) -> list[tuple[str, ...]]:
    """Return one row for each sub-job."""
    return [
        (
            job.name,
            job.cluster or "-",
            job.phase,
            str(job.attempt),
            f"{job.running}/{job.pods}",
            job.message,
        )
        for job in summary.jobs
    ]


def html_of(summary: Summary) -> str:
    """Return an HTML table for a notebook; all texts are escaped."""
    from hyperjob.html import table

    head = Markup("<p><b>HyperJob {}</b></p>").format(printable(_title(summary)))
    message = Markup("<p>{}</p>").format(printable(summary.message)) if summary.message else ""
    return str(head + message + table(_COLUMNS, rows_of(summary)))


def rich_of(summary: Summary) -> object:
    """Return a table for rich."""
    from rich.console import Group
    from rich.text import Text

    from hyperjob.table import table

    return Group(Text(f"HyperJob {_title(summary)}"), *table(_COLUMNS, rows_of(summary)))


def _title(summary: Summary) -> str:
    return f"{summary.namespace}/{summary.name}: {summary.phase}"
