"""The record of an installation: the options of `hyperjob install`, in a ConfigMap of Karmada.

A later `hyperjob install` begins with the recorded settings, and every printed remedy has them: no
option that a person leaves out changes the accounts, the tenancy or another part.
"""

import shlex
from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.api.wire import at, objects, string, strings
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    SECRETS,
    TRAINJOBS,
    Resource,
)
from hyperjob_install.members import MEMBER_ROLE, OLD_ACCOUNT, step_of
from hyperjob_install.objects import Component, Item, is_ours, new_item
from hyperjob_install.rbac import CONTROLLER, UI, WEBHOOK
from hyperjob_install.reach import address_of
from hyperjob_install.settings import PREFIX, Settings, account_user, service_of
from hyperjob_install.tenancy import POLICIES
from hyperjob_rules.configuration import MUTATING_NAME, ServiceReference

RECORD: Final = "hyperjob-install"
MARK: Final = f"{HYPERJOBS.group}/release"
"""The annotation of cluster-wide objects with the Helm release that installed them."""
_OLD_PART: Final = "progress"  # the part of releases before --members
UNKNOWN: Final = Settings(url="https://HOST:PORT")
"""The settings of a printed command for an installation that does not exist yet."""
_URL, _SERVICE, _ACCOUNTS, _PREFIX, _MEMBERS, _PARTS, _SKIP, _RELEASE = (
    *("webhook-url", "webhook-service", "service-accounts", "user-prefix", "members"),
    *("with", "skip", "release"),
)


def record_item(settings: Settings) -> Item:
    """Return the ConfigMap of the settings; `--skip webhooks` is a step and is not recorded.

    The caBundle of the webhook configurations changes at each rotation and is not recorded either.
    """
    data = {
        _ACCOUNTS: str(settings.service_accounts).lower(),
        _PREFIX: settings.user_prefix,
        _MEMBERS: str(settings.members),
        _PARTS: " ".join(settings.parts),
        _SKIP: " ".join(sorted(settings.skip - {Component.WEBHOOKS})),
        _RELEASE: settings.release,
        _URL: settings.url or "",
        _SERVICE: settings.address if settings.service else "",
    }
    return new_item(
        CONFIG_MAPS,
        RECORD,
        {"data": {key: value for key, value in data.items() if value}},
        part=Component.RECORD,
        component="record",
        namespace=LEASE_NAMESPACE,
    )


def settings_of(record: Object) -> Settings:
    """Return the settings of a ConfigMap that `record_item` made; absent keys have defaults."""
    data: Mapping[str, str] = record.get("data") or {}
    known = {str(part) for part in Component}
    parts = data.get(_PARTS, "").split()
    read = data.get(_MEMBERS, "logs" if _OLD_PART in parts else "off")
    service = data.get(_SERVICE)
    return Settings(
        url=data.get(_URL),
        service=service_of(service) if service else None,
        user_prefix=data.get(_PREFIX, PREFIX),
        service_accounts=data.get(_ACCOUNTS) == "true",
        members=MemberAccess(read),
        release=data.get(_RELEASE, ""),
        skip=frozenset(Component(part) for part in data.get(_SKIP, "").split() if part in known),
    ).with_parts(parts)


def command(settings: Settings, *more: str) -> str:
    """Return the whole `hyperjob install` of these settings, with `more` options."""
    words = ["hyperjob", "install"]
    if settings.service_accounts:
        words.append("--service-accounts")
    elif settings.user_prefix != PREFIX:
        words += ["--user-prefix", settings.user_prefix]
    if settings.members is not MemberAccess.OFF:
        words += ["--members", str(settings.members)]
    for part in settings.parts:
        words += ["--with", part]
    for skipped in sorted(settings.skip):
        words += ["--skip", skipped]
    if settings.release:
        words += ["--release", settings.release]
    if settings.address:
        words += ["--webhook-service" if settings.service else "--webhook-url", settings.address]
    return shlex.join([*words, *more])


def differences(before: Settings, after: Settings) -> list[str]:
    """Return a line for each setting that changes: its name, its value before and after."""
    pairs = {
        "accounts": (_accounts(before), _accounts(after)),
        **{
            part: tuple("on" if part in each.parts else "off" for each in (before, after))
            for part in (*before.parts, *after.parts)
        },
        "members": (str(before.members), str(after.members)),
        "skipped parts": (_skipped(before), _skipped(after)),
        "Helm release": (before.release, after.release),
        "webhook": (before.address, after.address),
    }
    return [
        f"{name}: {old or 'none'} -> {new or 'none'}"
        for name, (old, new) in pairs.items()
        if old != new
    ]


async def recorded(kube: Kube) -> Settings | None:
    """Return the settings of the present installation; None if there is none.

    An installation by an older release has no record: its settings are those of its objects.
    Raises KubeError.
    """
    record = await _record(kube)
    return await _inferred(kube) if record is None else settings_of(record)


async def recorded_release(kube: Kube) -> str:
    """Return the Helm release in the record; "" without one. Raises KubeError."""
    record = await _record(kube)
    return "" if record is None else settings_of(record).release


async def _record(kube: Kube) -> Object | None:
    """Return the ConfigMap of the record; None if `hyperjob install` did not create it."""
    record = await _get(kube, CONFIG_MAPS, RECORD, namespace=LEASE_NAMESPACE)
    return record if record is not None and is_ours(record) else None


async def _inferred(kube: Kube) -> Settings | None:
    """Return the settings of an installation without a record, from its roles and bindings."""
    binding = await _get(kube, CLUSTER_ROLE_BINDINGS, CONTROLLER)
    if binding is None or not is_ours(binding):
        return None
    subject = next(iter(objects(binding.get("subjects"))), {})
    account = account_user(string(subject.get("namespace")), string(subject.get("name")))
    user = account if subject.get("kind") == "ServiceAccount" else string(subject.get("name"))
    role = await _get(kube, CLUSTER_ROLES, CONTROLLER)
    parts = {
        "tenancy": await _get(kube, ADMISSION_POLICY_BINDINGS, POLICIES[0]),
        "ui": await _get(kube, CLUSTER_ROLE_BINDINGS, UI),
        "secret-warnings": _reads(await _get(kube, CLUSTER_ROLES, WEBHOOK), SECRETS),
        "trainjobs": _reads(role, TRAINJOBS),
        "failed-logs": _reads(role, CONFIG_MAPS),
    }
    read = step_of(await _get(kube, CLUSTER_ROLES, MEMBER_ROLE))
    if await _get(kube, CLUSTER_PROPAGATION_POLICIES, OLD_ACCOUNT) is not None:
        read = MemberAccess.LOGS
    url, service = _called_at(await _get(kube, MUTATING_WEBHOOKS, MUTATING_NAME))
    return Settings(
        url=url,
        service=service,
        user_prefix=PREFIX if user == account else user.removesuffix("controller"),
        service_accounts=user == account_user(LEASE_NAMESPACE, CONTROLLER),
        members=read,
        release=string(at(role or {}, "metadata", "annotations", MARK)),
    ).with_parts([part for part, found in parts.items() if found])


def _reads(role: Object | None, resource: Resource) -> bool:
    rules = objects((role or {}).get("rules"))
    return any(resource.plural in strings(rule.get("resources")) for rule in rules)


def _called_at(configuration: Object | None) -> tuple[str | None, ServiceReference | None]:
    """Return the base URL or the Service of the first webhook; twice None without a webhook."""
    for webhook in objects((configuration or {}).get("webhooks")):
        address = address_of(webhook)
        service = address.removeprefix("service ")
        return (address, None) if service == address else (None, service_of(service))
    return None, None


def _accounts(settings: Settings) -> str:
    if settings.service_accounts:
        return f"ServiceAccounts {PREFIX}* in namespace {LEASE_NAMESPACE}"
    return f"users {settings.user_prefix}*"


def _skipped(settings: Settings) -> str:
    return " ".join(sorted(settings.skip - {Component.WEBHOOKS}))


async def _get(
    kube: Kube, resource: Resource, name: str, *, namespace: str | None = None
) -> Object | None:
    try:
        return await kube.get(resource, name, namespace=namespace)
    except NotFound:
        return None
