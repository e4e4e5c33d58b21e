"""Printing: colours on a terminal only, JSON and YAML as kubectl prints them.

Standard output carries what was asked for and nothing else; remarks go to standard error.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
import yaml
from rich.console import Console
from rich.text import Text

from hyperjob.api.meta import Object
from hyperjob.client.errors import title

_F = TypeVar("_F", bound=Callable[..., Any])

TABLE, WIDE, NAME, JSON, YAML = "", "wide", "name", "json", "yaml"


def output(*choices: str) -> Callable[[_F], _F]:
    """Give a command `-o`, with these forms beside the one for people."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(choices),
        callback=lambda _ctx, _param, value: value or TABLE,
        help="Form of output.",
    )


class _Console(Console):
    """A console that leaves it to the command what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        """Raise it again."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Make a console: colours where it is a terminal and NO_COLOR is not set."""
    return _Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)


def say(lines: Iterable[Text | str], *, to: Console | None = None) -> None:
    """Print lines, each as long as it is; on a terminal they may wrap, in a pipe never."""
    where = to or console()
    for line in lines:
        text = line if isinstance(line, Text) else Text(line)
        text.rstrip()
        where.print(text, soft_wrap=True)


def remark(text: str) -> None:
    """Say something beside the output."""
    click.echo(text, err=True)


def dump(value: object, form: str) -> None:
    """Print a value as JSON or YAML."""
    if form == YAML:
        click.echo(yaml.safe_dump(value, allow_unicode=True), nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def objects(items: Sequence[Object], form: str, *, single: bool) -> None:
    """Print objects as name, JSON or YAML: one that was named as itself, others as a List."""
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
    """Drop managedFields, which nobody reads, as kubectl does."""
    metadata = {key: part for key, part in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}
