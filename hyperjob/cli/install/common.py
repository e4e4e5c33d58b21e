"""Flags, steps and output that `install`, `uninstall` and `preflight` share."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import TypeVar

import click

from hyperjob.cli.kubectl.access import aimed
from hyperjob.table import table
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_install.plan import Action, Change, shorten
from hyperjob_install.preflight import Finding, PreflightReport
from hyperjob_install.problems import InstallError, Problem

_T = TypeVar("_T")

output_option = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the changes and write nothing."
)
release_option = click.option(
    "--release",
    default="",
    metavar="NAMESPACE/NAME",
    help="Helm release that runs the command; objects of other releases stay unchanged.",
)


def end(
    work: Coroutine[None, None, _T], *, failure: type[click.ClickException] = click.ClickException
) -> _T:
    """Run `work` and return its result; an error of the API server ends the command in one line."""
    try:
        return asyncio.run(work)
    except (InstallError, KubeError, ConfigError) as error:
        raise failure(str(error)) from None


async def print_changes(
    changes: Sequence[Change],
    *,
    done: AsyncGenerator[Change, None] | None,
    output: str,
    last: str = "",
    kept: bool = False,
) -> None:
    """Print the changes; `done` makes them first, and its error follows the changes it made."""
    made, dry_run = list(changes) if done is None else [], done is None
    error: InstallError | KubeError | None = None
    if done is not None:
        async with aclosing(done):
            try:
                async for change in done:
                    made.append(change)
            except (InstallError, KubeError) as failure:
                error = failure
    if output == "json":
        click.echo(changes_json(made, (), dry_run=dry_run, error=str(error or "")))
    else:
        for line in rows(made, kept=kept):
            click.echo(line)
        click.echo(summary(made, dry_run=dry_run))
        if last and error is None and not dry_run:
            click.echo(last)
    if error is not None:
        raise error


_HEADER = ("ACTION", "OBJECT", "NAMESPACE", "FIELDS")


def rows(changes: Sequence[Change], *, kept: bool = False) -> list[str]:
    """Return a header and a row for each change; with `kept`, also for unchanged objects."""
    shown = [
        _cells(change)
        for change in changes
        if change.action.changes or (kept and change.action is Action.KEPT)
    ]
    if not shown:
        return []
    return [line.plain.rstrip() for line in table(_HEADER, shown)]


def summary(changes: Sequence[Change], *, dry_run: bool) -> str:
    """Return the number of objects for each action, in one line."""
    counts = Counter(change.action for change in changes)
    total = f"{len(changes)} object{'s' if len(changes) != 1 else ''}"
    if not any(change.action.changes for change in changes):
        if counts[Action.ABSENT]:
            return f"Nothing to delete: none of {total} exists and is HyperJob's."
        return f"Nothing to change: {total} checked, all up to date."
    text = ", ".join(f"{counts[action]} {action}" for action in Action if counts[action])
    return f"{text} (dry run: nothing was written)" if dry_run else text


def changes_json(
    changes: Sequence[Change], problems: Sequence[Problem], *, dry_run: bool, error: str = ""
) -> str:
    """Return changes and problems as JSON."""
    return json.dumps(
        {
            "dryRun": dry_run,
            "changes": [_change_value(change) for change in changes],
            "problems": [
                {"object": problem.title, "message": problem.message, "remedy": problem.remedy}
                for problem in problems
            ],
            "error": error,
        },
        indent=2,
    )


def findings(report: PreflightReport, *, flags: str) -> list[str]:
    """Return one line for each finding; its commands have the `flags` of the API server."""
    checks = max(len(finding.check) for finding in report.findings)
    return [_finding(finding, checks, flags) for finding in report.findings]


def report_json(report: PreflightReport, *, flags: str) -> str:
    """Return a preflight's report as JSON; its commands have the `flags` of the API server."""
    return json.dumps(
        {
            "passed": report.passed,
            "checks": [
                {
                    "check": finding.check,
                    "status": finding.verdict.status,
                    "message": aimed(finding.verdict.message, flags),
                    "remedy": aimed(finding.verdict.remedy, flags),
                }
                for finding in report.findings
            ],
        },
        indent=2,
    )


def _finding(finding: Finding, width: int, flags: str) -> str:
    verdict = finding.verdict
    line = f"{verdict.status:<8}  {finding.check:<{width}}  {aimed(verdict.message, flags)}"
    remedy = aimed(verdict.remedy, flags)
    return f"{line} -> {remedy}" if remedy else line


def _cells(change: Change) -> tuple[str, str, str, str]:
    fields = ",".join(shorten(change.fields)) or change.note
    item = change.item
    return (str(change.action), item.title, item.namespace or "", fields)


def _change_value(change: Change) -> dict[str, object]:
    item = change.item
    return {
        **item.resource.head,
        "name": item.name,
        "namespace": item.namespace,
        "action": change.action,
        "fields": list(change.fields),
        "note": change.note,
    }
