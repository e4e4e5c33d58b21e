"""`hyperjob lint`: check HyperJobs in files as admission does, without a cluster.

It runs the webhook's defaults and rules, and before them the API server's check of the schema. It
asks no server, and so knows no clusters and no queues.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from hyperjob.cli.lint.check import Checked, check
from hyperjob.cli.lint.documents import Source, UnreadableError, files_of, read
from hyperjob.cli.lint.fix import CannotFixError, fixed
from hyperjob.cli.lint.output import print_json, print_text

OK, REFUSED, UNREADABLE = 0, 1, 2


@click.command()
@click.argument(
    "files", type=click.Path(allow_dash=True), metavar="FILE...", nargs=-1, required=True
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option("--fix", is_flag=True, help="Write the defaults into the files.")
@click.option("--allow-none", is_flag=True, help="Accept files and folders without a HyperJob.")
def lint(files: tuple[str, ...], output: str, fix: bool, allow_none: bool) -> None:
    """Check HyperJobs in files, as admission would; `-` is standard input.

    In a folder, the command checks every .yaml, .yml and .json file directly in it.

    Exit code 0: admission would accept all; 1: admission would refuse a HyperJob, or a file or
    folder has no HyperJob; 2: a file cannot be read.

    Example: hyperjob lint job.yaml
    """
    given = {name: files_of(name) for name in files}
    checked = [_check(name) for names in given.values() for name in names]
    if fix:
        checked = [_fix(result) for result in checked]
    # What is fixed from standard input goes to standard output, and the findings out of its way.
    to_stderr = fix and "-" in files
    (print_json if output == "json" else print_text)(checked, err=to_stderr)
    code = _exit_code(checked)
    empty = [] if allow_none else _without_any(given, checked)
    for name in empty:
        click.echo(f"error: {name}: no HyperJob in it; --allow-none accepts that", err=True)
    sys.exit(code or (REFUSED if empty else OK))


def _without_any(given: Mapping[str, Sequence[str]], checked: Sequence[Checked]) -> list[str]:
    """Name the files and folders that were read and have no HyperJob."""
    without = {each.name for each in checked if not each.documents and not each.problem}
    return [name for name, files in given.items() if without.issuperset(files)]


def _check(name: str) -> Checked:
    try:
        return check(read(name))
    except UnreadableError as error:
        return Checked(name, problem=str(error))


def _fix(result: Checked) -> Checked:
    """Write the defaults of a file back, or report why that is impossible."""
    source = result.source
    if source is None:
        return result
    try:
        text = fixed(source)
    except CannotFixError as error:
        return Checked(result.name, result.documents, problem=str(error))
    _write(source, text)
    return replace(result, written=text != source.text)


def _write(source: Source, text: str) -> None:
    if source.name == "-":
        click.echo(text, nl=False)
    elif text != source.text:
        Path(source.name).write_text(text, encoding="utf-8")


def _exit_code(results: Iterable[Checked]) -> int:
    code = OK
    for result in results:
        if result.problem:
            return UNREADABLE
        if any(document.errors for document in result.documents):
            code = REFUSED
    return code
