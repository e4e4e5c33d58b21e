"""Tables of a HyperJob for notebooks and terminals."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from markupsafe import Markup

from hyperjob.client.summary import Summary
from hyperjob.client.training import number, words
from hyperjob_core.api.training import TrainingStatus
from hyperjob_core.text import printable

_COLUMNS = ("Sub-job", "Cluster", "Phase", "Attempt", "Pods", "Message")


def rows_of(summary: Summary) -> list[tuple[str, ...]]:
    """Return one row for each sub-job."""
    return [
        (
            job.name,
            job.cluster or "-",
            job.phase,
            str(job.number),
            f"{job.running}/{job.pods}",
            job.message,
        )
        for job in summary.jobs
    ]


def html_of(summary: Summary) -> str:
    """Return an HTML table for a notebook; all texts are escaped."""
    head = Markup("<p><b>HyperJob {}</b></p>").format(printable(_title(summary)))
    message = Markup("<p>{}</p>").format(printable(summary.message)) if summary.message else ""
    return str(head + _bar(summary) + message + _table(rows_of(summary)))


def _table(rows: Iterable[Sequence[str]]) -> Markup:
    def row(cell: Markup, texts: Iterable[str]) -> Markup:
        return Markup("<tr>{}</tr>").format(
            Markup("").join(cell.format(printable(text)) for text in texts)
        )

    head = row(Markup('<th scope="col">{}</th>'), _COLUMNS)
    body = Markup("").join(row(Markup("<td>{}</td>"), each) for each in rows)
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(head, body)


def _bar(summary: Summary) -> Markup:
    """Return the progress of the training as a bar and a line."""
    training = summary.training
    if training is None:
        return Markup("")
    percent = training.percent
    # Notebooks keep inline styles, and drop style elements.
    bar = Markup(
        '<div style="background:#8884;height:8px;border-radius:4px;max-width:40em">'
        '<div style="background:#0b7a75;height:8px;border-radius:4px;width:{}%"></div></div>'
    ).format(percent)
    words = Markup("<p>{}</p>").format(printable(_progress_text(training)))
    return (bar if percent is not None else Markup("")) + words


def _progress_text(training: TrainingStatus) -> str:
    found = {name: number(text) for name, text in training.metrics.items()}
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in found.items() if value is not None)
    return words(training, datetime.now(UTC)) + (f"; {metrics}" if metrics else "")


def rich_of(summary: Summary) -> object:
    """Return a table for rich."""
    from rich.console import Group, RenderableType
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    from hyperjob.table import table

    training = summary.training
    bar: list[RenderableType] = []
    if training is not None:
        if training.percent is not None:
            bar.append(ProgressBar(total=100, completed=training.percent))
        bar.append(Text(printable(_progress_text(training))))
    return Group(Text(f"HyperJob {_title(summary)}"), *bar, *table(_COLUMNS, rows_of(summary)))


def _title(summary: Summary) -> str:
    return f"{summary.namespace}/{summary.name}: {summary.phase}"
