"""`hyperjob get`: HyperJobs in a table; with `-w`, a row for every change."""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import click

from hyperjob.cli.get import view
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.choice import Choice, end, hyperjobs_argument
from hyperjob.cli.kubectl.exits import run
from hyperjob.client.reading import Found
from hyperjob.client.summary import read
from hyperjob.table import Layout
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.following import changes
from hyperjob_core.kube.resources import HYPERJOBS, key_of


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
        self._layout = Layout(view.header(wide=form == out.WIDE, namespaces=namespaces))
        self._console = out.console()

    def all(self, found: Found, *, single: bool, nowhere: str) -> None:
        """Print the HyperJobs found."""
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
        """Print one HyperJob."""
        if self._form in (out.TABLE, out.WIDE):
            self._rows([item])
        else:
            out.objects([item], self._form, single=True)

    def _rows(self, items: Sequence[Object]) -> None:
        now = datetime.now(UTC)
        rows = [
            view.row(read(item), now, wide=self._form == out.WIDE, namespaces=self._namespaces)
            for item in items
        ]
        lines = self._layout.rows(rows)
        if self._titles and items:
            lines = [self._layout.header(), *lines]
            self._titles = False
        out.say(lines, to=self._console)
