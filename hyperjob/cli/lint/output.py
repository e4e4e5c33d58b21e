"""Print the findings as text or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from hyperjob.cli.lint.check import Checked, CheckedDocument


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
    """Return the findings of a file as JSON values."""
    made: dict[str, Any] = {"file": result.name}
    if result.problem:
        made["problem"] = result.problem
    made["hyperJobs"] = [
        {
            "kind": document.kind,
            "name": document.name,
            "line": document.line,
            "errors": [
                {key: value for key, value in asdict(found).items() if key != "text"}
                for found in document.errors
            ],
            "warnings": [
                {
                    "rule": found.rule,
                    "line": found.line,
                    "message": found.text,
                    "remedy": found.remedy,
                }
                for found in document.warnings
            ],
        }
        for document in result.documents
    ]
    return made
