"""Printing: colours on a terminal only, JSON and YAML as kubectl prints them.

Only the requested objects go to standard output; remarks go to standard error.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, Final, TextIO, TypeVar, cast

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hyperjob.cli.kubectl.terminal import untouched
from hyperjob.client.errors import title
from hyperjob_core.api.meta import Object
from hyperjob_core.text import printable
from hyperjob_core.yamltext import to_yaml

_F = TypeVar("_F", bound=Callable[..., Any])

TABLE, WIDE, NAME, JSON, YAML = "", "wide", "name", "json", "yaml"


class _Form(click.Choice[str]):
    """A form of output, which says where those of kubectl alone are."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value.startswith(("jsonpath", "custom-columns", "go-template")):
            self.fail(f"{value!r} is of kubectl alone: kubectl get hj -o {value!r}", param, ctx)
        return super().convert(value, param, ctx)


def output(*choices: str) -> Callable[[_F], _F]:
    """Return a decorator that adds `-o` with these choices; without `-o` a command prints text."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=_Form(choices),
        callback=lambda _ctx, _param, value: value or TABLE,
        help="Output format.",
    )


class TerminalConsole(Console):
    """A console that escapes control characters in all text and writes only its own.

    A closed pipe raises BrokenPipeError, which the command handles.
    """

    def __init__(self, *, stderr: bool = False, markup: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True, markup=markup, emoji=False)

    @property
    def file(self) -> IO[str]:
        """The stream without escaping: `render` has escaped the text already."""
        return untouched(cast("TextIO", super().file))

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render with control characters of the text escaped."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, where rich would end the process."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> TerminalConsole:
    """Return a console, with colours where the stream is a terminal and NO_COLOR is not set."""
    return TerminalConsole(stderr=stderr)


def say(lines: Iterable[Text | str], *, to: Console | None = None) -> None:
    """Print lines without cutting them; a terminal may wrap a line, a pipe keeps it whole."""
    where = to or console()
    for line in lines:
        text = line if isinstance(line, Text) else Text(line)
        text.rstrip()
        where.print(text, soft_wrap=True)


def remark(text: str) -> None:
    """Print a remark to standard error."""
    click.echo(text, err=True)


def dump(value: object, form: str) -> None:
    """Print a value as JSON or YAML."""
    if form == YAML:
        text = to_yaml(value)
        if text != printable(text):
            # YAML has its own escapes for control characters, which every YAML parser decodes.
            text = to_yaml(value, allow_unicode=False)
        click.echo(text, nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def objects(items: Sequence[Object], form: str, *, single: bool) -> None:
    """Print objects as name, JSON or YAML; `single` prints the object, else a List."""
    if form == NAME:
        for item in items:
            click.echo(title(item["metadata"]["name"]))
        return
    shown = [clean(item) for item in items]
    if single and len(shown) == 1:
        dump(shown[0], form)
    else:
        document = {"apiVersion": "v1", "items": shown, "kind": "List", "metadata": {}}
        dump(document, form)


def clean(obj: Object) -> Object:
    """Return the object without managedFields, as kubectl prints it."""
    metadata = {key: part for key, part in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


_STYLES: Final[Mapping[str, str]] = {
    "Pending": "yellow",
    "Queued": "yellow",
    "Unplaced": "yellow",
    "Placed": "cyan",
    "Starting": "cyan",
    "Running": "bold cyan",
    "Degraded": "bold red",
    "Restarting": "magenta",
    "Stopping": "dim",
    "Suspended": "dim",
    "Completed": "bold green",
    "Succeeded": "bold green",
    "Failed": "bold red",
    "Aborted": "bold red",
    "Terminated": "bold red",
    "Terminating": "dim",
}


_REASONS: Final[Mapping[str, str]] = {"NoProgress": "bold red", "SlowProgress": "yellow"}
"""The colours of what runs, and trains badly."""


def phase(name: str, reason: str = "") -> Text:
    """Return a phase in its colour, or in that of its reason."""
    return Text(name, style=_REASONS.get(reason, _STYLES.get(name, "")))


def dim(text: str) -> Text:
    """Return a text in a dim style, for details."""
    return Text(text, style="dim")
