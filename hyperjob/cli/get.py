"""`hyperjob get`: HyperJobs in a table; with `-w`, a row for every change."""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Choice, end, hyperjobs_argument
from hyperjob.cli.kubectl.exits import run
from hyperjob.cli.kubectl.output import phase
from hyperjob.client.durations import age
from hyperjob.client.reading import Found
from hyperjob.client.summary import Summary, read
from hyperjob.client.training import goodput_of
from hyperjob.table import Layout, Row
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.reflector import changes
from hyperjob_core.kube.resources import HYPERJOBS, key_of
from hyperjob_core.text import shortened


@click.command()
@hyperjobs_argument(trainjobs=True)
@click.option(
    "-w", "--watch", is_flag=True, help="After listing, watch for changes and print them."
)
@click.option("--no-headers", is_flag=True, help="Print no column headers.")
@out.output(out.JSON, out.YAML, out.WIDE, out.NAME)
def get(choice: Choice, watch: bool, no_headers: bool, form: str) -> None:
    """List HyperJobs: status, sub-jobs, progress, clusters, restarts.

    Wide output adds the goodput (the productive share of the time in which the HyperJob was not
    suspended), the queue, the arguments of the program, the page of the run in a tracker, and the
    message of the status, which names the reason of a wait. Other forms, such as jsonpath, and
    --sort-by are of `kubectl get hj`.

    Example: kubectl hyperjob get -A -o wide
    """
    if watch and len(choice.names) > 1:
        raise click.UsageError("give one name, or none, to watch")
    printer = _Printer(form, namespaces=choice.access.all_namespaces, titles=not no_headers)

    async def show() -> None:
        async with choice.access.connect() as kube:
            if watch:
                await _follow(kube, printer, choice)
                return
            namespace = choice.access.scope(kube)
            found = await choice.read(kube)
        printer.all(found, single=choice.single, nowhere=_none_found(namespace))
        end(found)

    run(show())


def _none_found(namespace: str | None) -> str:
    where = f" in {namespace} namespace" if namespace else ""
    return f"No resources found{where}."


async def _follow(kube: Kube, printer: "_Printer", choice: Choice) -> None:
    """Print the HyperJobs, then each change, without an end.

    The list of a watch ends with a bookmark: its objects are printed sorted.
    """
    name = choice.names[0] if choice.names else None
    namespace = choice.access.scope(kube)
    if name is not None:  # kubectl's own `get -w NAME` fails too where the object does not exist
        await kube.get(HYPERJOBS, name, namespace=namespace)
    stream = changes(kube, HYPERJOBS, namespace=namespace, name=name, selector=choice.selector)
    first: list[Object] | None = []
    async with aclosing(stream) as events:
        async for event in events:
            if first is None:
                if event.type is not EventType.BOOKMARK:
                    printer.change(event.object)
            elif event.type is EventType.BOOKMARK:
                printer.some(first)
                first = None
            else:
                first.append(event.object)


class _Printer:
    """Prints HyperJobs in one form, a table under one header."""

    def __init__(self, form: str, *, namespaces: bool, titles: bool) -> None:
        self._form = form
        self._namespaces = namespaces
        self._titles = titles
        self._layout = Layout(header(wide=form == out.WIDE, namespaces=namespaces))
        self._console = out.console()

    def all(self, found: Found, *, single: bool, nowhere: str) -> None:
        if self._form not in (out.TABLE, out.WIDE):
            if found.items or not found.errors:
                out.objects(found.items, self._form, single=single)
        elif found.items:
            self.some(found.items)
        elif not found.errors:
            out.remark(nowhere)

    def some(self, items: Sequence[Object]) -> None:
        """Print several HyperJobs, sorted by namespace and name."""
        if self._form in (out.TABLE, out.WIDE):
            self._rows(sorted(items, key=key_of))
        else:
            for item in sorted(items, key=key_of):
                self.change(item)

    def change(self, item: Object) -> None:
        if self._form in (out.TABLE, out.WIDE):
            self._rows([item])
        else:
            out.objects([item], self._form, single=True)

    def _rows(self, items: Sequence[Object]) -> None:
        now = datetime.now(UTC)
        rows = [
            row(read(item), now, wide=self._form == out.WIDE, namespaces=self._namespaces)
            for item in items
        ]
        lines = self._layout.rows(rows)
        if self._titles and items:
            lines = [self._layout.header(), *lines]
            self._titles = False
        out.say(lines, to=self._console)


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
