"""Tokens of HyperJob's service accounts in the Karmada API server, in Secrets of the host cluster.

A Secret contains a kubeconfig and the token file that the kubeconfig names: clients read the file
again when it changes, and a renewed token needs no restart. Each token expires. The Secret of the
web page has the key of its sessions too, which stays.
"""

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_bytes
from ssl import CERT_NONE, DER_cert_to_PEM_cert
from typing import Final

import yaml

from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import CERTS, manager_of
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hyperjob_core.kube.http import HttpTransport
from hyperjob_core.kube.resources import SECRETS, SERVICE_ACCOUNTS
from hyperjob_install.objects import FIELD_MANAGER, is_ours, labelled
from hyperjob_install.plan import Action
from hyperjob_install.problems import InstallError
from hyperjob_install.rbac import UI

KUBECONFIG: Final = "kubeconfig"
TOKEN: Final = "token"  # noqa: S105 - the name of a key
SESSION_KEY: Final = "session.key"
_KEY_BYTES: Final = 32
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """A service account of the Karmada API server, and the Secret for its credentials."""

    name: str
    namespace: str
    secret: str
    secret_namespace: str


async def renew(
    connection: Connection, host: Kube, accounts: list[ServiceAccount], *, lifetime: timedelta
) -> dict[str, datetime]:
    """Request tokens and write them to Secrets; return the expiry of each account's token.

    Raises InstallError with the account or Secret and the next step.
    """
    ends = {}
    async with Kube(HttpTransport(connection, user_agent=FIELD_MANAGER)) as karmada:
        for account in accounts:
            token, end = await _token(karmada, account, lifetime)
            await _keep(host, account, kubeconfig(connection, account.name), token)
            ends[account.name] = end
    return ends


async def forget(host: Kube, *, namespace: str, secrets: list[str]) -> dict[str, Action]:
    """Delete Secrets that this module or hyperjob-certs created; return what became of each."""
    found = {}
    for name in secrets:
        try:
            live = await host.get(SECRETS, name, namespace=namespace)
            found[name] = Action.KEPT
            if is_ours(live) or manager_of(live) == CERTS:
                uid = live["metadata"]["uid"]
                await host.delete(SECRETS, name, namespace=namespace, uid=uid)
                found[name] = Action.DELETED
        except NotFound:
            found[name] = Action.ABSENT
    return found


def kubeconfig(connection: Connection, user: str) -> str:
    """Return a kubeconfig for the same API server with a token file in its own folder."""
    cluster: Object = {"server": connection.server}
    if connection.server_hostname:
        cluster["tls-server-name"] = connection.server_hostname
    if connection.tls is not None:
        trusted = connection.tls.get_ca_certs(binary_form=True)
        if connection.tls.verify_mode == CERT_NONE:
            cluster["insecure-skip-tls-verify"] = True
        elif trusted:
            pem = "".join(DER_cert_to_PEM_cert(one) for one in trusted)
            cluster["certificate-authority-data"] = b64encode(pem.encode()).decode("ascii")
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "karmada", "cluster": cluster}],
        "users": [{"name": user, "user": {"tokenFile": TOKEN}}],
        "contexts": [{"name": "karmada", "context": {"cluster": "karmada", "user": user}}],
        "current-context": "karmada",
    }
    return str(yaml.safe_dump(document, sort_keys=False))


async def _token(kube: Kube, account: ServiceAccount, lifetime: timedelta) -> tuple[str, datetime]:
    """Request a token; return it with its end, which the API server may have brought forward."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(lifetime.total_seconds())},
    }
    path = SERVICE_ACCOUNTS.path(account.namespace, account.name, "token")
    where = f"service account {account.namespace}/{account.name}"
    try:
        status = (await kube.raw("POST", path, body=body)).json()["status"]
    except NotFound:
        raise InstallError(
            f"{where} does not exist: run `hyperjob install --service-accounts` first"
        ) from None
    except KubeError as error:
        raise InstallError(f"no token for {where}: {error.message}") from error
    return str(status["token"]), datetime.fromisoformat(status["expirationTimestamp"])


async def _keep(host: Kube, account: ServiceAccount, config: str, token: str) -> None:
    """Create the Secret, or replace its kubeconfig and token."""
    texts = {KUBECONFIG: config, TOKEN: token}
    data = {key: b64encode(text.encode()).decode("ascii") for key, text in texts.items()}
    key = b64encode(token_bytes(_KEY_BYTES)).decode("ascii")
    once = {SESSION_KEY: key} if account.name == UI else {}
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await _write(host, account, data, once)
        except (Conflict, AlreadyExists) as error:
            if attempt == _ATTEMPTS:
                raise _not_kept(account, error) from error
        except KubeError as error:
            raise _not_kept(account, error) from error
        else:
            return


async def _write(
    host: Kube, account: ServiceAccount, data: dict[str, str], once: dict[str, str]
) -> None:
    """Write `data` into the Secret, and the keys of `once` that it lacks."""
    try:
        live = await host.get(SECRETS, account.secret, namespace=account.secret_namespace)
    except NotFound:
        secret: Object = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {"name": account.secret, "namespace": account.secret_namespace},
            "type": "Opaque",
            "data": {**once, **data},
        }
        await host.create(SECRETS, labelled(secret, component="credentials"))
        return
    if not is_ours(live):
        raise InstallError(
            f"{_secret(account)} exists, and hyperjob credentials did not create it: name another"
            " Secret with --account, or delete this one"
        )
    await host.replace(SECRETS, {**live, "data": {**once, **(live.get("data") or {}), **data}})


def _not_kept(account: ServiceAccount, error: KubeError) -> InstallError:
    return InstallError(f"{_secret(account)} cannot be written: {error.message}")


def _secret(account: ServiceAccount) -> str:
    return f"secret {account.secret_namespace}/{account.secret}"
