"""`hyperjob lint`: validate HyperJobs and TrainJobs in files as admission does, without a server.

The command checks the CRD's schema as the API server does, then runs the webhook's defaulting and
validation. It makes no request, and cannot check whether clusters and queues exist.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from hyperjob.cli.lint.check import Checked, CheckedDocument, check, runtimes_of
from hyperjob.cli.lint.documents import ManifestFile, UnreadableError, files_of, read
from hyperjob_core.text import listed

OK, REFUSED, UNREADABLE = 0, 1, 2


@click.command()
@click.argument(
    "files", type=click.Path(allow_dash=True), metavar="FILE...", nargs=-1, required=True
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--allow-none", is_flag=True, help="Accept files and folders that contain no HyperJob."
)
def lint(files: tuple[str, ...], output: str, allow_none: bool) -> None:
    """Validate HyperJobs in files as admission does; `-` is standard input.

    A TrainJob is validated if its runtime is in one of the files too.

    In a folder, the command validates every .yaml, .yml and .json file, without subfolders.

    Exit code 0: admission would accept all HyperJobs; 1: admission would refuse a HyperJob, or a
    file or folder contains no HyperJob; 2: a file cannot be read.

    Example: hyperjob lint job.yaml
    """
    given = {name: files_of(name) for name in files}
    sources = [_source(name) for names in given.values() for name in names]
    runtimes = runtimes_of(each for each in sources if isinstance(each, ManifestFile))
    checked = [
        check(each, runtimes) if isinstance(each, ManifestFile) else each for each in sources
    ]
    (print_json if output == "json" else print_text)(checked)
    code = _exit_code(checked)
    empty = [] if allow_none else _without_any(given, checked)
    for text in (text for each in checked for text in each.jobs):
        click.echo(text, err=True)
    for name in empty:
        kinds = [kind for each in checked if each.name in given[name] for kind in each.others]
        but = f", but {listed(list(dict.fromkeys(kinds)))}" if kinds else ""
        hint = "--allow-none accepts that"
        click.echo(f"error: {name}: contains no HyperJob{but}; {hint}", err=True)
    sys.exit(code or (REFUSED if empty else OK))


def _without_any(given: Mapping[str, Sequence[str]], checked: Sequence[Checked]) -> list[str]:
    """Return the names of files and folders that were read and contain no HyperJob."""
    without = {each.name for each in checked if not each.documents and not each.problem}
    return [name for name, files in given.items() if without.issuperset(files)]


def _source(name: str) -> ManifestFile | Checked:
    """Read a file; the result is a Checked with the reason if it cannot be read."""
    try:
        return read(name)
    except UnreadableError as error:
        return Checked(name, problem=str(error))


def _exit_code(results: Iterable[Checked]) -> int:
    code = OK
    for result in results:
        if result.problem:
            return UNREADABLE
        if any(document.errors for document in result.documents):
            code = REFUSED
    return code


def print_text(results: Sequence[Checked]) -> None:
    """Print one line for each finding, with file and line as compilers do, and a summary."""
    for result in results:
        name = "<stdin>" if result.name == "-" else result.name
        for document in result.documents:
            _print_document(name, document)
        if result.problem:
            click.echo(f"error: {name}: {result.problem}", err=True)


def _print_document(name: str, document: CheckedDocument) -> None:
    for kind, findings in (("error", document.errors), ("warning", document.warnings)):
        for found in findings:
            click.echo(f"{name}:{found.line}: {kind}: {found.text} [{found.rule}]")
            if found.remedy:
                click.echo(f"    remedy: {found.remedy}")
    what = f"{name}:{document.line}: {document.kind} {document.name or '(no name)'}"
    verdict = "would be refused" if document.errors else "would be accepted"
    click.echo(f"{what}: {verdict}{_counts(document)}")


def _counts(document: CheckedDocument) -> str:
    counts = [
        f"{len(findings)} {noun}{'' if len(findings) == 1 else 's'}"
        for findings, noun in ((document.errors, "error"), (document.warnings, "warning"))
        if findings
    ]
    return f", {', '.join(counts)}" if counts else ""


def print_json(results: Sequence[Checked]) -> None:
    """Print the results as one JSON object."""
    documents = [document for result in results for document in result.documents]
    answer = {
        "errors": sum(len(document.errors) for document in documents),
        "warnings": sum(len(document.warnings) for document in documents),
        "files": [_file(result) for result in results],
    }
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False))


def _file(result: Checked) -> dict[str, Any]:
    hyperjobs = [
        {
            "kind": document.kind,
            "name": document.name,
            "line": document.line,
            "errors": [_without(asdict(found), "text") for found in document.errors],
            "warnings": [
                _without({**asdict(found), "message": found.text}, "text", "field", "reason")
                for found in document.warnings
            ],
        }
        for document in result.documents
    ]
    problem = {"problem": result.problem} if result.problem else {}
    return {"file": result.name, **problem, "hyperJobs": hyperjobs}


def _without(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in names}
