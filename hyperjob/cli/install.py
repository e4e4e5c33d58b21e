"""`hyperjob install | uninstall | preflight`: HyperJob's objects in the Karmada API server."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from certs.x509 import InvalidPair, facts, split_bundle
from hyperjob import __version__
from hyperjob.cli import installview as view
from hyperjob.install.execute import execute
from hyperjob.install.manifest import Settings, manifest
from hyperjob.install.objects import FIELD_MANAGER, Item, Part
from hyperjob.install.plan import Change, Plan, plan, require_karmada
from hyperjob.install.preflight import Report
from hyperjob.install.preflight import preflight as look_over
from hyperjob.install.problems import InstallError
from hyperjob.install.release import marked, other_release
from hyperjob.install.remove import in_use, remove, targets
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import ConfigError, KubeError
from webhook.configuration import ServiceReference

_USER_AGENT = f"{FIELD_MANAGER}/{__version__}"
_CANNOT_LOOK = 2

_T = TypeVar("_T")

_kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="kubeconfig of the Karmada API server.  [default: $KUBECONFIG, the pod's own account,"
    " ~/.kube/config]",
)
_context = click.option("--context", metavar="NAME", help="Context of that kubeconfig.")
_output = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would change.")
_release = click.option(
    "--release",
    metavar="NAMESPACE/NAME",
    help="Helm release that does this, which stays away from what another one put there.",
)
_lease_namespace = click.option(
    "--lease-namespace",
    metavar="NAME",
    default="karmada-system",
    show_default=True,
    help="Namespace of the controller's Lease.",
)
_timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for each definition.",
)


class _CannotLookError(click.ClickException):
    """The API server could not be asked."""

    exit_code = _CANNOT_LOOK


@click.command()
@_kubeconfig
@_context
@click.option("--webhook-url", metavar="URL", help="Where the API server finds the webhook.")
@click.option(
    "--webhook-service",
    metavar="NAMESPACE/NAME[:PORT]",
    help="The same by a Service, for a webhook that runs behind the Karmada API server itself.",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Authorities (PEM) that the API server shall trust. Without it caBundle stays as it is,"
    " for `hyperjob-certs inject` to fill in.",
)
@click.option(
    "--controller-user",
    metavar="USER",
    default="hyperjob-controller",
    show_default=True,
    help="User of the controller, or system:serviceaccount:NAMESPACE:NAME.",
)
@click.option(
    "--certs-user",
    metavar="USER",
    default="hyperjob-certs",
    show_default=True,
    help="User of `hyperjob-certs inject`, in the same form.",
)
@click.option(
    "--webhook-user",
    metavar="USER",
    default="hyperjob-webhook",
    show_default=True,
    help="User of a webhook that is given a kubeconfig, in the same form.",
)
@click.option(
    "--service-accounts",
    is_flag=True,
    help="Make all users service accounts in the namespace of the Lease; `hyperjob credentials"
    " renew` gets their tokens.",
)
@_lease_namespace
@_release
@click.option(
    "--skip",
    type=click.Choice([str(part) for part in Part]),
    multiple=True,
    help="Leave a part out; may be given several times.",
)
@click.option(
    "--force-conflicts", is_flag=True, help="Take fields over that other field managers own."
)
@click.option(
    "--allow-field-loss",
    is_flag=True,
    help="Replace a HyperJob definition that knows more fields than this release.",
)
@_dry_run
@_timeout
@_output
def install(
    kubeconfig: Path | None,
    context: str | None,
    webhook_url: str | None,
    webhook_service: str | None,
    ca_file: Path | None,
    controller_user: str,
    certs_user: str,
    webhook_user: str,
    service_accounts: bool,
    lease_namespace: str,
    release: str | None,
    skip: Sequence[str],
    force_conflicts: bool,
    allow_field_loss: bool,
    dry_run: bool,
    timeout: float,
    output: str,
) -> None:
    """Put into the Karmada API server what HyperJob needs there.

    Definitions, rights, interpreters, the queue policy and, last, the webhooks. Run again, it
    writes only what differs.

    Example: hyperjob install --webhook-url https://webhook.hj --ca-file ca.crt
    """
    skipped = frozenset(Part(part) for part in skip)
    if Part.WEBHOOKS not in skipped and (webhook_url is None) == (webhook_service is None):
        raise click.UsageError("give either --webhook-url or --webhook-service")
    settings = Settings(
        url=webhook_url,
        service=_service(webhook_service) if webhook_service else None,
        ca_bundle=_authorities(ca_file) if ca_file else b"",
        controller_user=controller_user,
        certs_user=certs_user,
        webhook_user=webhook_user,
        lease_namespace=lease_namespace,
        service_accounts=service_accounts,
        skip=skipped,
    )
    try:
        items = manifest(settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if release:
        items = marked(items, release)

    async def run() -> None:
        async with _connect(kubeconfig, context) as kube:
            await require_karmada(kube)
            if release and not force_conflicts and (other := await other_release(kube, release)):
                raise InstallError(
                    f"HyperJob is in this Karmada already, by the Helm release {other}: upgrade or"
                    " uninstall that one, or take over with --force-conflicts"
                    " (setup.forceConflicts=true)"
                )
            found = await plan(
                kube, items, force_conflicts=force_conflicts, allow_field_loss=allow_field_loss
            )
            if found.problems:
                _refuse(found, dry_run=dry_run, output=output)
            done = execute(kube, found, force_conflicts=force_conflicts, wait=timeout)
            await _print(
                found.changes,
                done=None if dry_run else done,
                output=output,
                last="Next: hyperjob preflight",
            )

    _run(run())


@click.command()
@_kubeconfig
@_context
@_lease_namespace
@_release
@click.option(
    "--keep-crds/--delete-crds",
    default=True,
    show_default=True,
    help="Whether the definitions stay. Deleting the HyperJob's deletes every HyperJob.",
)
@click.option("--force", is_flag=True, help="Even while HyperJobs exist.")
@_dry_run
@_timeout
@_output
def uninstall(
    kubeconfig: Path | None,
    context: str | None,
    lease_namespace: str,
    release: str | None,
    keep_crds: bool,
    force: bool,
    dry_run: bool,
    timeout: float,
    output: str,
) -> None:
    """Take out of the Karmada API server what `hyperjob install` put there.

    Webhooks go first. Only objects that `hyperjob install` made are deleted.

    Example: hyperjob uninstall --dry-run
    """

    async def run() -> None:
        async with _connect(kubeconfig, context) as kube:
            items: Sequence[Item] = targets(
                lease_namespace=lease_namespace, delete_crds=not keep_crds
            )
            if release and (other := await other_release(kube, release)):
                click.echo(f"HyperJob is in this Karmada by the Helm release {other}", err=True)
                items = ()
            elif not force and (used := await in_use(kube)):
                raise InstallError(f"{used}; {_way_out(keep_crds=keep_crds)}")
            # What is deleted shows only as it is done, or as a dry run tries it.
            changes = remove(kube, items, dry_run=dry_run, wait=timeout)
            told = [change async for change in changes] if dry_run else []
            await _print(told, done=None if dry_run else changes, output=output, kept=True)

    _run(run())


@click.command()
@_kubeconfig
@_context
@_lease_namespace
@_output
def preflight(
    kubeconfig: Path | None, context: str | None, lease_namespace: str, output: str
) -> None:
    """Say what HyperJobs still need, one line each, with the command that mends it.

    Exit code 0: they can run; 1: something is missing; 2: it could not be looked at. Changes
    nothing.

    Example: hyperjob preflight -o json
    """

    async def run() -> Report:
        async with _connect(kubeconfig, context) as kube:
            return await look_over(kube, now=datetime.now(UTC), lease_namespace=lease_namespace)

    report = _run(run(), failure=_CannotLookError)
    if output == "json":
        click.echo(view.report_json(report, kubeconfig=kubeconfig))
    else:
        for line in view.findings(report, kubeconfig=kubeconfig):
            click.echo(line)
    if not report.reached:
        sys.exit(_CANNOT_LOOK)
    sys.exit(0 if report.passed else 1)


def _connect(kubeconfig: Path | None, context: str | None) -> AbstractAsyncContextManager[Kube]:
    return Kube.connect(kubeconfig=kubeconfig, context=context, user_agent=_USER_AGENT)


def _run(
    work: Coroutine[None, None, _T], *, failure: type[click.ClickException] = click.ClickException
) -> _T:
    """Run to the end; what goes wrong is said in one line."""
    try:
        return asyncio.run(work)
    except (InstallError, KubeError, ConfigError) as error:
        raise failure(str(error)) from None


async def _print(
    changes: Sequence[Change],
    *,
    done: AsyncGenerator[Change, None] | None,
    output: str,
    last: str = "",
    kept: bool = False,
) -> None:
    """Print changes; with `done` those that are made now, so that a failure shows after them."""
    made = list(changes) if done is None else []
    error: InstallError | KubeError | None = None
    if done is not None:
        async with aclosing(done):
            try:
                async for change in done:
                    made.append(change)
            except (InstallError, KubeError) as failure:
                error = failure
    dry_run = done is None
    if output == "json":
        text = view.changes_json(made, (), dry_run=dry_run, error=str(error or ""))
        click.echo(text)
    else:
        for line in view.rows(made, kept=kept):
            click.echo(line)
        click.echo(view.summary(made, dry_run=dry_run))
        if last and error is None and not dry_run:
            click.echo(last)
    if error is not None:
        raise error


def _refuse(found: Plan, *, dry_run: bool, output: str) -> NoReturn:
    """End the command with what is in the way."""
    if output == "json":
        click.echo(view.changes_json((), found.problems, dry_run=dry_run))
    raise InstallError(view.problems_text(found.problems))


def _way_out(*, keep_crds: bool) -> str:
    going_on = (
        "--force leaves them without defaults, checks and a controller that may act"
        if keep_crds
        else "--force deletes them all, and their jobs in the members"
    )
    return f"delete them first (kubectl delete hyperjobs --all -A); {going_on}"


def _service(text: str) -> ServiceReference:
    namespace, slash, rest = text.partition("/")
    name, colon, port = rest.partition(":")
    if not (namespace and slash and name) or (colon and not port.isdecimal()):
        raise click.UsageError(f"--webhook-service {text!r} must be NAMESPACE/NAME[:PORT]")
    return ServiceReference(namespace, name, int(port) if colon else 443)


def _authorities(path: Path) -> bytes:
    """Read the CA file; what no API server could use is a usage error."""
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
