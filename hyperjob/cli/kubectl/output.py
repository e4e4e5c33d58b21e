"""Printing: colours on a terminal only, JSON and YAML as kubectl prints them.

Only the requested objects go to standard output; remarks go to standard error.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, Final, TextIO, TypeVar, cast

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hyperjob.cli.kubectl.terminal import untouched
from hyperjob_core.text import printable
from hyperjob_core.yamltext import to_yaml

_F = TypeVar("_F", bound=Callable[..., Any])

TABLE, WIDE, JSON, YAML = "", "wide", "json", "yaml"
_OF_KUBECTL: Final = ("json", "yaml", "name", "custom-columns", "go-template")


class _Form(click.Choice[str]):
    """A form of output, which says where those of kubectl alone are."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the form."""
        if value not in self.choices and value.startswith(_OF_KUBECTL):
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
