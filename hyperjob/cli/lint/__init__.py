"""`hyperjob lint`: validate HyperJobs in files as admission does, without an API server.

The command checks the CRD's schema as the API server does, then runs the webhook's defaulting and
validation. It makes no request, and cannot check whether clusters and queues exist.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from hyperjob.cli.lint.check import Checked, check
from hyperjob.cli.lint.documents import ManifestFile, UnreadableError, files_of, read
from hyperjob.cli.lint.fix import CannotFixError, fixed
from hyperjob.cli.lint.output import print_json, print_text

OK, REFUSED, UNREADABLE = 0, 1, 2


@click.command()
@click.argument(
    "files", type=click.Path(allow_dash=True), metavar="FILE...", nargs=-1, required=True
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option("--fix", is_flag=True, help="Write the webhook's defaults into the files.")
@click.option(
    "--allow-none", is_flag=True, help="Accept files and folders that contain no HyperJob."
)
def lint(files: tuple[str, ...], output: str, fix: bool, allow_none: bool) -> None:
    """Validate HyperJobs in files as admission does; `-` is standard input.

    In a folder, the command validates every .yaml, .yml and .json file, without subfolders.

    Exit code 0: admission would accept all HyperJobs; 1: admission would refuse a HyperJob, or a
    file or folder contains no HyperJob; 2: a file cannot be read.

    Example: hyperjob lint job.yaml
    """
    given = {name: files_of(name) for name in files}
    checked = [_checked_file(name) for names in given.values() for name in names]
    if fix:
        checked = [_fix(result) for result in checked]
    # With --fix, standard output carries the HyperJobs of standard input: findings go to standard
    # error.
    to_stderr = fix and "-" in files
    (print_json if output == "json" else print_text)(checked, err=to_stderr)
    code = _exit_code(checked)
    empty = [] if allow_none else _without_any(given, checked)
    for name in empty:
        click.echo(f"error: {name}: contains no HyperJob; --allow-none accepts that", err=True)
    sys.exit(code or (REFUSED if empty else OK))


def _without_any(given: Mapping[str, Sequence[str]], checked: Sequence[Checked]) -> list[str]:
    """Return the names of files and folders that were read and contain no HyperJob."""
    without = {each.name for each in checked if not each.documents and not each.problem}
    return [name for name, files in given.items() if without.issuperset(files)]


def _checked_file(name: str) -> Checked:
    try:
        return check(read(name))
    except UnreadableError as error:
        return Checked(name, problem=str(error))


def _fix(result: Checked) -> Checked:
    """Write the defaults into a file; the result has the problem where that is impossible."""
    source = result.source
    if source is None:
        return result
    try:
        text = fixed(source)
    except CannotFixError as error:
        return Checked(result.name, result.documents, problem=str(error))
    _write_fixed(source, text)
    return replace(result, written=text != source.text)


def _write_fixed(source: ManifestFile, text: str) -> None:
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
