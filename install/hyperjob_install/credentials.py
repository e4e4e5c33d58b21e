"""Tokens of HyperJob's service accounts in the Karmada API server, in Secrets of the host cluster.

A Secret contains a kubeconfig and the token file that the kubeconfig names: clients read the file
again when it changes, and a renewed token needs no restart. Each token expires. The Secret of the
web page has the key of its sessions too, which stays; that of the controller has the record of all
renewals, for its metrics.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import token_bytes
from ssl import CERT_NONE, DER_cert_to_PEM_cert
from typing import Final

import yaml

from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import CERTS, manager_of
from hyperjob_core.api.wire import string_map
from hyperjob_core.kube.client import Kube, again_on_conflict
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.http import HttpTransport
from hyperjob_core.kube.renewals import RENEWALS, Renewal, parse, render
from hyperjob_core.kube.resources import SECRETS, SERVICE_ACCOUNTS
from hyperjob_install.objects import FIELD_MANAGER, is_ours, labelled
from hyperjob_install.plan import Action
from hyperjob_install.problems import InstallError
from hyperjob_install.rbac import CONTROLLER, UI

KUBECONFIG: Final = "kubeconfig"
TOKEN: Final = "token"  # noqa: S105 - the name of a key
SESSION_KEY: Final = "session.key"
_KEY_BYTES: Final = 32
_ATTEMPTS: Final = 3

Texts = Callable[[Mapping[str, str]], dict[str, str]]
"""Returns the new texts of a Secret by key, from its present data."""


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

    The Secret of the controller gets the record of all of them. A failure does not keep the other
    tokens from their renewal; raises InstallError with the accounts or Secrets and the next step.
    """
    ends: dict[str, datetime] = {}
    problems = []
    async with Kube(HttpTransport(connection, user_agent=FIELD_MANAGER)) as karmada:
        for account in accounts:
            try:
                token, end = await _token(karmada, account, lifetime)
                config = kubeconfig(connection, account.name)
                await _keep(host, account, partial(_texts, config=config, token=token))
            except InstallError as problem:
                problems.append(str(problem))
            else:
                ends[account.name] = end
    for account in accounts:
        if account.name == CONTROLLER and ends:
            await _keep(
                host, account, partial(_record, ends=ends, names={a.name for a in accounts})
            )
    if problems:
        raise InstallError("; ".join(problems))
    return ends


def _texts(_: Mapping[str, str], *, config: str, token: str) -> dict[str, str]:
    return {KUBECONFIG: config, TOKEN: token}


def _record(
    live: Mapping[str, str], *, ends: Mapping[str, datetime], names: Collection[str]
) -> dict[str, str]:
    """Return the record of the renewals, with the last ones of accounts that now failed."""
    now = int(datetime.now(UTC).timestamp())
    found = parse(b64decode(live.get(RENEWALS, "")))
    found |= {name: Renewal(now, int(end.timestamp())) for name, end in ends.items()}
    return {RENEWALS: render({name: found[name] for name in sorted(names) if name in found})}


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


async def _keep(host: Kube, account: ServiceAccount, texts: Texts) -> None:
    """Create the Secret, or replace those of its texts that `texts` returns for its data."""
    key = b64encode(token_bytes(_KEY_BYTES)).decode("ascii")
    once = {SESSION_KEY: key} if account.name == UI else {}
    try:
        write = partial(_write, host, account, texts, once)
        await again_on_conflict(write, tries=_ATTEMPTS)
    except KubeError as error:
        raise InstallError(f"{_secret(account)} cannot be written: {error.message}") from error


async def _write(host: Kube, account: ServiceAccount, texts: Texts, once: dict[str, str]) -> None:
    """Write `texts` into the Secret, and the keys of `once` that it lacks."""
    try:
        live = await host.get(SECRETS, account.secret, namespace=account.secret_namespace)
    except NotFound:
        secret: Object = {
            "metadata": {"name": account.secret, "namespace": account.secret_namespace},
            "type": "Opaque",
            "data": {**once, **_encoded(texts({}))},
        }
        await host.create(SECRETS, labelled(secret, component="credentials"))
        return
    if not is_ours(live):
        raise InstallError(
            f"{_secret(account)} exists, and hyperjob credentials did not create it: name another"
            " Secret with --account, or delete this one"
        )
    data = string_map(live.get("data"))
    await host.replace(SECRETS, {**live, "data": {**once, **data, **_encoded(texts(data))}})


def _encoded(texts: Mapping[str, str]) -> dict[str, str]:
    return {key: b64encode(text.encode()).decode("ascii") for key, text in texts.items()}


def _secret(account: ServiceAccount) -> str:
    return f"secret {account.secret_namespace}/{account.secret}"
