"""Tables of a HyperJob for notebooks and terminals."""

from html import escape

from hyperjob.client.summary import Summary

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
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows_of(summary)
    )
    title = f"{summary.namespace}/{summary.name}: {summary.phase}"
    message = f"<p>{escape(summary.message)}</p>" if summary.message else ""
    return (
        f"<p><b>HyperJob {escape(title)}</b></p>{message}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def rich_of(summary: Summary) -> object:
    """Return a table for rich."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"HyperJob {summary.namespace}/{summary.name}: {summary.phase}"))
    for name in _COLUMNS:
        table.add_column(name)
    for row in rows_of(summary):
        table.add_row(*(Text(cell) for cell in row))
    return table
