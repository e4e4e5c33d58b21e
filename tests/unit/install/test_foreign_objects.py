"""Objects of other owners under the names that install, credentials and certs write."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob_certs.__main__ import inject
from hyperjob_certs.store import Bundle, RotationPolicy, SecretStore, advance
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.api.ownership import ForeignObjectError
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.resources import (
    CRDS,
    LEASES,
    MUTATING_WEBHOOKS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from hyperjob_install import credentials, reach
from hyperjob_install.credentials import ServiceAccount, forget, renew
from hyperjob_install.execute import remove, targets
from hyperjob_install.manifest import manifest
from hyperjob_install.objects import Component, Item
from hyperjob_install.plan import Action, plan
from hyperjob_install.problems import InstallError
from hyperjob_install.reach import require_webhook
from hyperjob_install.settings import PARTS, Settings
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME
from tests.unit.install.servers import InstallServer

Object = dict[str, Any]
ALL = Settings(
    url="https://hook", service_accounts=True, members=MemberAccess.LOGS, parts=frozenset(PARTS)
)
INSTALLED = {
    f"{item.title}{f' in {item.namespace}' if item.namespace else ''}": item
    for item in manifest(ALL)
    if not item.absent
}


def theirs(item: Item) -> Object:
    """Return the same object by another owner: no field conflicts, only the label is missing."""
    made = deepcopy(item.object)
    made["metadata"].pop("labels", None)
    return made


@pytest.mark.parametrize("name", INSTALLED)
async def test_an_installation_takes_over_no_object_of_another_owner(name: str) -> None:
    item, server = INSTALLED[name], InstallServer()
    if item.resource is CRDS and item.part is Component.CRDS:
        return  # the name of a definition is that of its kind: there is no other of the name
    before = deepcopy(server.put(item.resource, theirs(item)))
    found = await plan(server.kube, [item])
    if item.only_where_missing:
        (change,) = found.changes
        assert (change.action, change.note) == (
            Action.KEPT,
            "exists, and hyperjob install did not create it",
        )
    else:
        (problem,) = found.problems
        assert problem.title == item.title
        assert problem.message == "exists, and hyperjob install did not create it"
        assert problem.remedy == (
            "delete it, or take it over with --allow conflicts: hyperjob uninstall then deletes it"
        )
        taken = await plan(server.kube, [item], force_conflicts=True)
        assert [change.action for change in taken.changes] == [Action.CONFIGURED]
    removed = [each async for each in remove(server.kube, [item])]
    assert [(each.action, each.note) for each in removed] == [
        (Action.KEPT, "not created by hyperjob install")
    ]
    assert server.items(item.resource) == [before]
    assert server.calls == []


SECRET = {"metadata": {"name": "s", "namespace": "n"}, "data": {"token": "dGhlaXJz"}}
POLICY = RotationPolicy(names=("hook",))


async def _renew(server: InstallServer, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(credentials, "HttpTransport", lambda *_, **__: InstallServer())
    account = ServiceAccount(name="a", namespace="k", secret="s", secret_namespace="n")
    connection = Connection(server="https://karmada")
    await renew(connection, server.kube, [account], lifetime=timedelta(hours=2))


async def _rotate(server: InstallServer, _: pytest.MonkeyPatch) -> None:
    store = SecretStore(server.kube, namespace="n", name="s")
    bundle, _steps = advance(Bundle(), policy=POLICY, now=datetime.now(UTC))
    await store.save(bundle, over=await store.load())


async def _inject(server: InstallServer, _: pytest.MonkeyPatch) -> None:
    await inject(server.kube, ca_bundle=b"ours")


async def _try_webhook(server: InstallServer, _: pytest.MonkeyPatch) -> None:
    item = next(each for each in manifest(ALL) if each.resource is MUTATING_WEBHOOKS)
    await require_webhook(server.kube, item, seconds=0)


async def _forget(server: InstallServer, _: pytest.MonkeyPatch) -> None:
    assert await forget(server.kube, namespace="n", secrets=["s"]) == {"s": Action.KEPT}


async def _remove_lease(server: InstallServer, _: pytest.MonkeyPatch) -> None:
    (lease,) = (each for each in targets(delete_crds=False) if each.resource is LEASES)
    (change,) = [each async for each in remove(server.kube, [lease])]
    assert (change.action, change.note) == (Action.KEPT, "not created by hyperjob install")


@dataclass(frozen=True, kw_only=True)
class Write:
    """A write under a name that can be foreseen, and what it says instead; "": it returns it."""

    resource: Resource
    object: Object
    write: Callable[[InstallServer, pytest.MonkeyPatch], Awaitable[None]]
    says: str = ""


def hook(name: str) -> Object:
    config = {"caBundle": "dGhlaXJz", "url": "https://theirs"}
    return {"metadata": {"name": name}, "webhooks": [{"name": "a.b.c", "clientConfig": config}]}


WRITES = {
    "a token to a Secret": Write(
        resource=SECRETS,
        object=SECRET,
        write=_renew,
        says="secret n/s exists, and hyperjob credentials did not create it: name another Secret",
    ),
    "the deletion of a Secret": Write(resource=SECRETS, object=SECRET, write=_forget),
    "a certificate to a Secret": Write(
        resource=SECRETS,
        object=SECRET,
        write=_rotate,
        says="Secret n/s exists, and hyperjob-certs did not create it: name another Secret with",
    ),
    "a caBundle to a MutatingWebhookConfiguration": Write(
        resource=MUTATING_WEBHOOKS,
        object=hook(MUTATING_NAME),
        write=_inject,
        says=f"MutatingWebhookConfiguration {MUTATING_NAME} exists, and hyperjob install did not",
    ),
    "a caBundle to a ValidatingWebhookConfiguration": Write(
        resource=VALIDATING_WEBHOOKS,
        object=hook(VALIDATING_NAME),
        write=_inject,
        says=f"ValidatingWebhookConfiguration {VALIDATING_NAME} exists, and hyperjob install did",
    ),
    "the trial of the webhook": Write(
        resource=MUTATING_WEBHOOKS,
        object=hook(reach.TRIAL),
        write=_try_webhook,
        says=f"{reach.TRIAL} exists, and hyperjob install did not create it: delete it and run",
    ),
    "the deletion of the Lease": Write(
        resource=LEASES,
        object={"metadata": {"name": LEASE_NAME, "namespace": LEASE_NAMESPACE}},
        write=_remove_lease,
    ),
}


@pytest.mark.parametrize("case", WRITES)
async def test_nothing_is_written_to_an_object_of_another_owner_and_the_error_names_it(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, server = WRITES[case], InstallServer()
    before = deepcopy(server.put(row.resource, deepcopy(row.object)))
    if row.says:
        with pytest.raises((InstallError, ForeignObjectError)) as refused:
            await row.write(server, monkeypatch)
        assert row.says in str(refused.value)
    else:
        await row.write(server, monkeypatch)
    assert server.items(row.resource) == [before]
    assert server.calls == []


async def test_what_an_installation_created_itself_is_its_own() -> None:
    server = InstallServer()
    server.install(INSTALLED.values())
    assert (await plan(server.kube, list(INSTALLED.values()))).problems == ()
    parts = {each.part for each in INSTALLED.values()}
    assert parts == set(Component), "every part is in the table"
