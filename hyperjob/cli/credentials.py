"""`hyperjob credentials renew | delete`: service account tokens for the Karmada API server."""

from collections.abc import Sequence
from datetime import timedelta

import click

from hyperjob.cli.install import end
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.kube import config
from hyperjob_core.kube.client import Kube
from hyperjob_install.credentials import ServiceAccount, forget, renew
from hyperjob_install.plan import Action

_host = click.option(
    "--host-kubeconfig",
    metavar="FILE",
    help="kubeconfig of the cluster that keeps the Secrets.  [default: $KUBECONFIG, the pod's own"
    " account, ~/.kube/config]",
)
_SAID = {
    Action.DELETED: "deleted",
    Action.ABSENT: "not found",
    Action.KEPT: "kept: neither `hyperjob credentials` nor hyperjob-certs created it",
}
_namespace = click.option(
    "--namespace", "-n", metavar="NAME", required=True, help="Namespace of the Secrets."
)


@click.group()
def credentials() -> None:
    """Manage the service account tokens in Secrets of the host cluster.

    Example: hyperjob credentials delete -n karmada-system hyperjob-controller-karmada
    """


@credentials.command("renew")
@click.option(
    "--karmada-kubeconfig",
    metavar="FILE",
    required=True,
    help="kubeconfig of the Karmada API server; of several with : between them, those that exist.",
)
@_host
@_namespace
@click.option(
    "--account",
    "pairs",
    metavar="ACCOUNT=SECRET",
    multiple=True,
    required=True,
    help="Service account and the Secret for its credentials; may be given more than once.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0.01, max=365),
    default=3.0,
    show_default=True,
    help="Lifetime of a token; the API server may shorten it.",
)
def renew_command(
    karmada_kubeconfig: str,
    host_kubeconfig: str | None,
    namespace: str,
    pairs: Sequence[str],
    days: float,
) -> None:
    """Request tokens from the Karmada API server and write them to Secrets.

    Example: hyperjob credentials renew --karmada-kubeconfig karmada.config -n karmada-system
    --account hyperjob-controller=hyperjob-controller-karmada
    """
    accounts = [_account(pair, namespace) for pair in pairs]

    async def run() -> None:
        connection = await config.load(karmada_kubeconfig)
        async with Kube.connect(kubeconfig=host_kubeconfig) as host:
            ends = await renew(connection, host, accounts, lifetime=timedelta(days=days))
        for each in accounts:
            end = ends[each.name].isoformat()
            click.echo(f"{each.name}: the token in secret/{each.secret} expires at {end}")

    end(run())


@credentials.command("delete")
@_host
@_namespace
@click.argument("secrets", nargs=-1, required=True, metavar="SECRET…")
def delete_command(host_kubeconfig: str | None, namespace: str, secrets: Sequence[str]) -> None:
    """Delete Secrets that `hyperjob credentials` or `hyperjob-certs` created.

    Example: hyperjob credentials delete -n karmada-system hyperjob-controller-karmada
    """

    async def run() -> None:
        async with Kube.connect(kubeconfig=host_kubeconfig) as host:
            found = await forget(host, namespace=namespace, secrets=list(secrets))
        for name, action in found.items():
            click.echo(f"secret/{name} {_SAID[action]}")

    end(run())


def _account(pair: str, namespace: str) -> ServiceAccount:
    name, equals, secret = pair.partition("=")
    if not (name and equals and secret):
        raise click.UsageError(f"--account {pair!r} must be ACCOUNT=SECRET")
    return ServiceAccount(
        name=name, namespace=LEASE_NAMESPACE, secret=secret, secret_namespace=namespace
    )
