"""`hyperjob install` and `uninstall`: create HyperJob's objects in Karmada, and delete them.

What they print of an installation, `preflight` and the demo print too.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from hyperjob.cli.files import gathered
from hyperjob.cli.kubectl.access import Access, Parsed, access, aimed
from hyperjob.table import table
from hyperjob_certs.x509 import InvalidPair, facts, split_bundle
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError, KubeError
from hyperjob_install.execute import execute, in_use, remove, targets
from hyperjob_install.manifest import manifest
from hyperjob_install.objects import Component, Item
from hyperjob_install.plan import Action, Change, InstallPlan, plan, require_karmada, shorten
from hyperjob_install.preflight import Finding, PreflightReport
from hyperjob_install.problems import InstallError, Problem, problems_text
from hyperjob_install.settings import (
    PARTS,
    PREFIX,
    Asked,
    Settings,
    differences,
    other_release,
    recorded,
    service_of,
    trusting,
)

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


@click.command()
@access(namespaced=False)
@click.option(
    "--webhook-url", "url", metavar="URL", help="URL at which the API server calls the webhook."
)
@click.option(
    "--webhook-service",
    "service",
    type=Parsed("service", service_of),
    metavar="NAMESPACE/NAME[:PORT]",
    help="Service in the Karmada API server through which it calls the webhook, instead of a URL.",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="PEM file for the caBundle of the webhooks. Without it caBundle stays unchanged, and"
    " `hyperjob-certs inject` writes it.",
)
@click.option(
    "--user-prefix",
    metavar="PREFIX",
    help="Users get the rights of the processes by name: PREFIX with controller, certs, webhook, ui"
    f" and members; {PREFIX} at first. The prefix system:serviceaccount:NAMESPACE:NAME- is that of"
    " service accounts.",
)
@click.option(
    "--service-accounts",
    is_flag=True,
    help=f"Create service accounts for these users in the namespace {LEASE_NAMESPACE}; `hyperjob"
    " credentials renew` requests their tokens.",
)
@click.option(
    "--members",
    type=click.Choice([str(step) for step in MemberAccess]),
    callback=lambda _ctx, _param, step: step and MemberAccess(step),
    help="What the user that reads the clusters for the controller's --members may read in every"
    " member, through Karmada's cluster proxy: pods; nodes, also nodes and HyperNodes; logs, also"
    " logs; off, nothing. nodes at first. See docs/tasks/members.md.",
)
@click.option(
    "--with",
    "add",
    type=click.Choice(PARTS),
    multiple=True,
    help="Add a part; may be given more than once. tenancy: a HyperJob may name only queues,"
    " PriorityClasses and clusters on which its user has the verb `use`. ui: rights of"
    " `hyperjob ui --require-login`. secret-warnings: the webhook may get Secrets, to warn of"
    " HyperJobs whose Secrets are missing; it reads metadata only. trainjobs: the controller makes"
    " HyperJobs of Kubeflow's TrainJobs, and the webhook validates them; Trainer's CRDs may be"
    " installed before or after.",
)
@click.option(
    "--without",
    "remove",
    type=click.Choice(PARTS),
    multiple=True,
    help="Remove a part that an earlier run added; may be given more than once.",
)
@release_option
@click.option(
    "--skip",
    type=click.Choice([*(str(part) for part in Component if part != Component.RECORD), "none"]),
    multiple=True,
    help="Skip a part; may be given more than once. Later runs skip it too, until another --skip"
    " names the parts; `none` skips none. Only this run skips webhooks.",
)
@click.option(
    "--allow",
    "allowed",
    type=click.Choice(["conflicts", "interpreters", "field-loss", "unreachable-webhook"]),
    multiple=True,
    help="Allow a change that the command refuses otherwise; may be given more than once."
    " conflicts: take over fields that other field managers own. interpreters: delete Volcano"
    " Global's ResourceInterpreterCustomizations, which conflict with HyperJob's. field-loss:"
    " replace a HyperJob CRD that has more fields than this release's. unreachable-webhook: write"
    " the webhook configurations although the API server does not reach the webhook.",
)
@dry_run_option
@output_option
@gathered("asked", Asked)
def install(
    access: Access,
    asked: Asked,
    ca_file: Path | None,
    allowed: Sequence[str],
    dry_run: bool,
    output: str,
) -> None:
    """Create the objects that HyperJob needs in the Karmada API server.

    The command writes CRDs, RBAC, interpreters, the ClusterPropagationPolicy of Queues and, last,
    the webhook configurations. A second run writes only objects that differ. Options that are not
    given keep the value of the last run, and changed settings are printed before the first write.

    Example: hyperjob install --webhook-url https://webhook.hj --ca-file ca.crt
    """
    if ca_file:
        asked = replace(asked, ca_bundle=_authorities(ca_file))
    try:
        if asked.has_address:
            manifest(asked.over(None))
    except ValueError as error:
        raise click.UsageError(str(error)) from None

    async def run() -> None:
        async with access.connect() as kube:
            await require_karmada(kube)
            before = await recorded(kube)
            settings = asked.over(before)
            if not settings.address and Component.WEBHOOKS not in settings.skip:
                raise click.UsageError("give either --webhook-url or --webhook-service")
            await _own_release(kube, settings, allowed)
            found = await _planned(kube, await trusting(kube, settings), allowed)
            if found.problems:
                _refuse(found, flags=access.flags, dry_run=dry_run, output=output)
            for line in differences(before, settings) if before else ():
                click.echo(f"changes of this installation: {line}", err=output == "json")
            done = execute(
                kube,
                found,
                force_conflicts="conflicts" in allowed,
                unreachable="unreachable-webhook" in allowed,
            )
            await print_changes(
                found.changes,
                done=None if dry_run else done,
                output=output,
                last=aimed("Next: hyperjob preflight", access.flags),
            )

    end(run())


async def _planned(kube: Kube, settings: Settings, allowed: Sequence[str]) -> InstallPlan:
    """Return the writes of an installation, and the problems that `allowed` does not permit."""
    return await plan(
        kube,
        manifest(settings),
        force_conflicts="conflicts" in allowed,
        allow_field_loss="field-loss" in allowed,
        replace_others="interpreters" in allowed,
    )


async def _own_release(kube: Kube, settings: Settings, allowed: Sequence[str]) -> None:
    """Raise InstallError if another Helm release has installed HyperJob."""
    if not settings.release or "conflicts" in allowed:
        return
    if other := await other_release(kube, settings.release):
        raise InstallError(
            f"the Helm release {other} has installed HyperJob in this Karmada: upgrade or"
            " uninstall that release, or take over with --allow conflicts"
            " (setup.allow={conflicts})"
        )


def _refuse(found: InstallPlan, *, flags: str, dry_run: bool, output: str) -> NoReturn:
    """Print the problems that prevent the installation, and end the command."""
    problems = [replace(each, remedy=aimed(each.remedy, flags)) for each in found.problems]
    if output == "json":
        click.echo(changes_json((), problems, dry_run=dry_run))
    raise InstallError(problems_text(problems))


def _authorities(path: Path) -> bytes:
    """Return the certificates of the CA file; a file without a valid one is a usage error."""
    pem = path.read_bytes()
    try:
        ends = [facts(one).not_after for one in split_bundle(pem)]
    except InvalidPair as error:
        raise click.UsageError(f"--ca-file {path}: {error}") from None
    if not ends:
        raise click.UsageError(f"--ca-file {path} holds no certificate")
    if max(ends) <= datetime.now(UTC):
        raise click.UsageError(f"--ca-file {path}: all certificates in it have expired")
    return pem


@click.command()
@access(namespaced=False)
@release_option
@click.option(
    "--keep-crds/--delete-crds",
    default=True,
    show_default=True,
    help="Keep or delete the CRDs. Deleting the HyperJob CRD deletes every HyperJob.",
)
@click.option("--force", is_flag=True, help="Uninstall although HyperJobs exist.")
@dry_run_option
@output_option
def uninstall(
    access: Access,
    release: str,
    keep_crds: bool,
    force: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Delete the objects that `hyperjob install` created in the Karmada API server.

    The command deletes the webhook configurations first. Objects that `hyperjob install` did not
    create stay.

    Example: hyperjob uninstall --dry-run
    """

    async def run() -> None:
        async with access.connect() as kube:
            items: Sequence[Item] = targets(delete_crds=not keep_crds)
            if release and (other := await other_release(kube, release)):
                click.echo(
                    f"the Helm release {other} has installed HyperJob in this Karmada", err=True
                )
                items = ()
            elif not force and (used := await in_use(kube)):
                raise InstallError(f"{used}; {_way_out(keep_crds=keep_crds)}")
            # Only the deletion itself, or a server dry run, shows which objects exist.
            changes = remove(kube, items, dry_run=dry_run)
            changed = [change async for change in changes] if dry_run else []
            await print_changes(
                changed, done=None if dry_run else changes, output=output, kept=True
            )

    end(run())


def _way_out(*, keep_crds: bool) -> str:
    going_on = (
        "--force leaves them without webhooks and without a controller that has the rights to act"
        if keep_crds
        else "--force deletes all of them, and their vcjobs in the members"
    )
    return f"delete them first (kubectl delete hyperjobs --all -A); {going_on}"
