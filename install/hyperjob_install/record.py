"""The record of an installation: the options of `hyperjob install`, in a ConfigMap of Karmada.

A later `hyperjob install` begins with the recorded settings, and every printed remedy has them: no
option that a person leaves out changes the accounts, the tenancy or another part.
"""

import shlex
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CONFIG_MAPS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_install.objects import Component, Item, is_ours, new_item
from hyperjob_install.settings import PREFIX, Settings, service_of
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

RECORD: Final = "hyperjob-install"
_AUTHORITY: Final = "ca.crt"
DEFAULT: Final = Settings()
UNKNOWN: Final = Settings(url="https://HOST:PORT")
"""The settings of a printed command for an installation that does not exist yet."""
_URL, _SERVICE, _ACCOUNTS, _PREFIX, _MEMBERS, _PARTS, _SKIP, _RELEASE = (
    *("webhook-url", "webhook-service", "service-accounts", "user-prefix", "members"),
    *("with", "skip", "release"),
)


def record_item(settings: Settings) -> Item:
    """Return the ConfigMap of the settings; `--skip webhooks` is a step and is not recorded.

    The caBundle of the webhook configurations changes at each rotation: the recorded authority is
    that of the last run which named one.
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
        _AUTHORITY: settings.authority.decode("ascii"),
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
    service = data.get(_SERVICE)
    return Settings(
        url=data.get(_URL),
        authority=data.get(_AUTHORITY, "").encode("ascii", "ignore"),
        service=service_of(service) if service else None,
        user_prefix=data.get(_PREFIX, PREFIX),
        service_accounts=data.get(_ACCOUNTS) == "true",
        members=MemberAccess(data.get(_MEMBERS, DEFAULT.members)),
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
    if settings.members is not DEFAULT.members:
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
    """Return the settings of the present installation; None if there is none. Raises KubeError."""
    try:
        record = await kube.get(CONFIG_MAPS, RECORD, namespace=LEASE_NAMESPACE)
    except NotFound:
        return None
    return settings_of(record) if is_ours(record) else None


async def trusting(kube: Kube, settings: Settings) -> Settings:
    """Return the settings with a caBundle for a webhook configuration that is missing.

    It is that of the other configuration, else the recorded authority. Raises KubeError.
    """
    if settings.ca_bundle or Component.WEBHOOKS in settings.skip:
        return settings
    found: list[str] = []
    missing = False
    for resource, name in (
        (MUTATING_WEBHOOKS, MUTATING_NAME),
        (VALIDATING_WEBHOOKS, VALIDATING_NAME),
    ):
        try:
            live = await kube.get(resource, name)
        except NotFound:
            missing = True
        else:
            hooks = objects(live.get("webhooks"))
            found += [string(at(hook, "clientConfig", "caBundle")) for hook in hooks]
    if not missing:
        return settings
    bundle = next(filter(None, found), "")
    return replace(settings, ca_bundle=b64decode(bundle) if bundle else settings.authority)


async def other_release(kube: Kube, release: str) -> str:
    """Return the other Helm release that installed HyperJob; "" if none did. Raises KubeError."""
    before = await recorded(kube)
    return before.release if before is not None and before.release != release else ""


def _accounts(settings: Settings) -> str:
    if settings.service_accounts:
        return f"ServiceAccounts {PREFIX}* in namespace {LEASE_NAMESPACE}"
    return f"users {settings.user_prefix}*"


def _skipped(settings: Settings) -> str:
    return " ".join(sorted(settings.skip - {Component.WEBHOOKS}))
