"""A HyperJob as last read, its table in notebooks and terminals, and its metrics as a picture.

The clients with and without asyncio share it. matplotlib is imported only here, when it draws.
"""

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self
from urllib.parse import quote, urlsplit, urlunsplit

from markupsafe import Markup

from hyperjob.client.summary import Summary, read
from hyperjob.client.training import Goodput, goodput_of, number, words
from hyperjob.sdk.errors import HyperJobError
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import ExpectedStart
from hyperjob_core.api.training import TrainingStatus
from hyperjob_core.kube.client import Kube
from hyperjob_core.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Connection(Protocol):
    """What a HyperJob needs of its client."""

    page: str

    @property
    def kube(self) -> Kube:
        """Return the Kubernetes client."""
        ...


class Access:
    """The address of an API server."""

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        page: str | None = None,
    ) -> None:
        """Find the API server as kubectl does.

        The order is `kubeconfig`, KUBECONFIG, ~/.kube/config, the service account of the pod. The
        default of `namespace`, for names without one, is the namespace of the kubeconfig's context.
        `page` is the address of the web page, such as `hyperjob ui` prints; the default is the
        variable HYPERJOB_PAGE.
        """
        self.kubeconfig = kubeconfig
        self.namespace = namespace or ""
        self.page = page or os.environ.get("HYPERJOB_PAGE", "")
        self._context = context
        self._begin()

    def __repr__(self) -> str:
        where = self.kubeconfig or "the kubeconfig of kubectl"
        return f"<{type(self).__name__} of {where}, namespace {self.namespace or 'default'}>"

    def _begin(self) -> None:
        """Prepare or open the connection."""
        raise NotImplementedError


@dataclass(slots=True)
class LastRead:
    """The object of a HyperJob that was last read; an AsyncJob and its Job share it."""

    raw: Object
    page: str = ""


class JobView:
    """A HyperJob as it was last read."""

    def __init__(self, reading: LastRead) -> None:
        self.reading = reading
        self.name = str(reading.raw["metadata"]["name"])
        self.namespace = str(reading.raw["metadata"]["namespace"])

    @property
    def raw(self) -> Object:
        """Return the object that was last read."""
        return self.reading.raw

    @property
    def status(self) -> Summary:
        """Return the status that was last read: phase, reason, message, clusters, sub-jobs."""
        return read(self.raw)

    @property
    def url(self) -> str:
        """Return the address of the HyperJob on the web page; raise HyperJobError without one."""
        if not self.reading.page:
            raise HyperJobError(
                "the client knows no web page: give page=, or the variable HYPERJOB_PAGE, with the"
                " address that `hyperjob ui` prints"
            )
        page = urlsplit(self.reading.page)
        path = f"{page.path.rstrip('/')}/hyperjobs/{quote(self.namespace)}/{quote(self.name)}"
        return urlunsplit(page._replace(path=path))

    @property
    def phase(self) -> str:
        """Return the phase that was last read."""
        return self.status.phase

    @property
    def training(self) -> TrainingStatus | None:
        """Return `status.training` when last read; None where the program reports none."""
        return self.status.training

    @property
    def goodput(self) -> Goodput | None:
        """Return the HyperJob's time by use, and its goodput, as of the status last read."""
        status = self.status
        return goodput_of(status.goodput, status.training, datetime.now(UTC))

    @property
    def expected_start(self) -> ExpectedStart | None:
        """Return the expected start when last read; None without an estimate."""
        return self.status.expected_start

    def __repr__(self) -> str:
        return f"<HyperJob {self.namespace}/{self.name} {self.phase}>"

    def _repr_html_(self) -> str:
        return html_of(self.status)

    def __rich__(self) -> object:
        return rich_of(self.status)


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


class Screen:
    """The place of the table; elsewhere than in a terminal or a notebook nothing is shown."""

    def __init__(self) -> None:
        self._display: Any = None
        self._html: Any = None
        self._live: Any = None

    def __enter__(self) -> Self:
        if _in_notebook():
            self._html = sys.modules["IPython.display"].HTML
            self._display = sys.modules["IPython.display"].display(self._html(""), display_id=True)
        elif sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, summary: Summary) -> None:
        """Show a status in place of the one before."""
        if self._display is not None:
            self._display.update(self._html(html_of(summary)))
        if self._live is not None:
            self._live.update(rich_of(summary))


def _in_notebook() -> bool:
    """Return whether this Python is the kernel of a notebook, which is then imported already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


Axis = Literal["step", "time"]
NO_METRICS = frozenset({"time", "step", "steps", "saved", "rank"})


def drawn(
    rows: Sequence[Mapping[str, float | datetime]],
    metrics: Sequence[str],
    *,
    name: str,
    axis: Axis,
    ax: "Axes | None",
) -> "Figure":
    """Draw metrics of rows over steps or seconds; return the figure. Raise HyperJobError.

    Without `metrics` it draws every one. Without `ax` each metric gets axes of its own.

    Rows of several ranks are one line, by the mean of each step.
    """
    known = sorted({key for row in rows for key in row} - NO_METRICS)
    chosen = [*metrics] or known
    if missing := [each for each in chosen if each not in known]:
        there = ", ".join(known) or "none: call progress(step=..., loss=...) in the training"
        raise HyperJobError(f"{name} has reported no metric {missing[0]!r}; there are {there}")
    if not chosen:
        raise HyperJobError(f"{name} has reported no metrics: call progress(step=..., loss=...)")
    one_metric = ax is None or len(chosen) == 1  # on each axes
    targets = _figure(len(chosen)).axes if ax is None else [ax] * len(chosen)
    for metric, target in zip(chosen, targets, strict=True):
        label = name if one_metric else f"{name} {metric}"
        target.plot(*_curve(rows, metric, axis), label=label, linewidth=1.4)
        target.set_xlabel("step" if axis == "step" else "seconds")
        if one_metric:
            target.set_ylabel(metric)
        target.legend()
    return targets[0].get_figure(root=True)


def _figure(number: int) -> "Figure":
    """Return a figure with axes below each other; raise HyperJobError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise HyperJobError(
            "plot needs matplotlib: pip install matplotlib; job.metrics() returns the rows"
        ) from None

    figure = Figure(figsize=(6.4, 2.6 * number), layout="constrained")
    figure.subplots(number, squeeze=False)
    # A notebook shows a figure that pyplot does not know by this method.
    figure._repr_png_ = partial(_png, figure)
    return figure


def _png(figure: "Figure") -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", bbox_inches="tight")
    return data.getvalue()


def _curve(
    rows: Sequence[Mapping[str, float | datetime]], metric: str, axis: Axis
) -> tuple[list[float], list[float]]:
    """Return places and values of a metric; seconds count from the first row."""
    begin = rows[0]["time"]
    sums: dict[float, list[float]] = {}
    for row in rows:
        value: Any = row.get(metric)
        if value is not None:
            at: Any = row["time"]
            where = float(row["step"]) if axis == "step" else (at - begin).total_seconds()  # type: ignore[arg-type]
            sums.setdefault(where, []).append(value)
    places = sorted(sums)
    return places, [sum(sums[each]) / len(sums[each]) for each in places]
