"""The settings of an installation, and their record in a ConfigMap of Karmada."""

import shlex
from base64 import b64decode
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import CONFIG_MAPS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_install.objects import Component, Item, is_ours, new_item
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME, ServiceReference

PREFIX: Final = "hyperjob-"
SERVICE_ACCOUNT_USER: Final = "system:serviceaccount:"
TENANCY, UI, SECRET_WARNINGS, TRAINJOBS = "tenancy", "ui", "secret-warnings", "trainjobs"
PARTS: Final = (TENANCY, UI, SECRET_WARNINGS, TRAINJOBS)
"""The optional parts, as `hyperjob install --with` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an installation.

    `url` or `service` is the address of the webhook, unless the webhooks are skipped. An empty
    `ca_bundle` (PEM) leaves `caBundle` unchanged, and `hyperjob-certs inject` writes it.
    `authority` is the `ca_bundle` of the last run that had one, for missing configurations.
    The users of the processes are `user_prefix` with `controller`, `certs`, `webhook`, `ui` and
    `members`; `service_accounts` makes all of them service accounts in the namespace of the Lease.
    `members` is the step of the user that reads the members. Of the optional `parts` TENANCY
    requires a right to use queues, PriorityClasses and clusters, UI adds the user of a shared page,
    SECRET_WARNINGS lets the webhook get Secrets, to warn of missing Secrets, and TRAINJOBS adds the
    rights and the webhook for TrainJobs of Kubeflow Trainer. `release` is the Helm release that
    installs, empty without one.
    """

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes = b""
    authority: bytes = b""
    user_prefix: str = PREFIX
    service_accounts: bool = False
    members: MemberAccess = MemberAccess.NODES
    parts: frozenset[str] = frozenset()
    skip: frozenset[Component] = frozenset()
    release: str = ""

    def user(self, process: str, *, namespace: str = LEASE_NAMESPACE) -> str:
        """Return the user of a process, such as `controller`; `namespace` is of its account."""
        if self.service_accounts:
            return account_user(namespace, f"{PREFIX}{process}")
        return f"{self.user_prefix}{process}"

    @property
    def address(self) -> str:
        """Return the webhook's URL, or its Service as `--webhook-service` takes it; "" for none."""
        if self.service is not None:
            return f"{self.service.namespace}/{self.service.name}:{self.service.port}"
        return self.url or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of one run of `hyperjob install`; None or empty leaves a setting as it is.

    `add` and `remove` are optional parts. `skip` are names of parts, or `none`. Raises ValueError
    for options that exclude each other.
    """

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes = b""
    user_prefix: str | None = None
    service_accounts: bool = False
    members: MemberAccess | None = None
    add: Collection[str] = ()
    remove: Collection[str] = ()
    skip: Collection[str] = ()
    release: str = ""

    def __post_init__(self) -> None:
        if self.url is not None and self.service is not None:
            raise ValueError("give either --webhook-url or --webhook-service")
        if self.service_accounts and self.user_prefix is not None:
            raise ValueError("give either --user-prefix or --service-accounts")
        if both := sorted({*self.add} & {*self.remove}):
            raise ValueError(f"give either --with {both[0]} or --without {both[0]}")

    @property
    def has_address(self) -> bool:
        """Return whether the options name the webhook, or leave the webhooks out."""
        return bool(self.url or self.service) or Component.WEBHOOKS in self.skip

    def over(self, before: Settings | None) -> Settings:
        """Return the settings of this run, over those of the last run."""
        base = before or Settings()
        moves = self.url is not None or self.service is not None
        changes_accounts = self.service_accounts or self.user_prefix is not None
        return Settings(
            url=self.url if moves else base.url,
            service=self.service if moves else base.service,
            ca_bundle=self.ca_bundle,
            authority=self.ca_bundle or base.authority,
            user_prefix=(self.user_prefix or PREFIX) if changes_accounts else base.user_prefix,
            service_accounts=self.service_accounts if changes_accounts else base.service_accounts,
            members=base.members if self.members is None else self.members,
            skip=self._skipped(base),
            release=self.release or base.release,
            parts=frozenset({*base.parts, *self.add} - {*self.remove}),
        )

    def _skipped(self, base: Settings) -> frozenset[Component]:
        """Return the parts to leave out: those that this run names, else those of the last run.

        `webhooks` is a step of one run: only this run's options say whether it is left out.
        """
        step = {Component.WEBHOOKS} & {*self.skip}
        named = {part for part in Component if part in self.skip} - {Component.WEBHOOKS}
        if named or "none" in self.skip:
            return frozenset(named | step)
        return frozenset((base.skip - {Component.WEBHOOKS}) | step)


def account_user(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{SERVICE_ACCOUNT_USER}{namespace}:{name}"


def service_of(text: str) -> ServiceReference:
    """Return the Service of NAMESPACE/NAME[:PORT], port 443 by default; ValueError for another."""
    namespace, slash, rest = text.partition("/")
    name, colon, port = rest.partition(":")
    if not (namespace and slash and name) or (colon and not port.isdecimal()):
        raise ValueError(f"--webhook-service {text!r} must be NAMESPACE/NAME[:PORT]")
    return ServiceReference(namespace, name, int(port) if colon else 443)


RECORD: Final = "hyperjob-install"
_AUTHORITY: Final = "ca.crt"
DEFAULT: Final = Settings()
UNKNOWN: Final = Settings(url="https://HOST:PORT")
"""The settings of a printed command for an installation that does not exist yet."""
_URL, _SERVICE, _ACCOUNTS, _PREFIX, _MEMBERS, _PARTS, _SKIP, _RELEASE = (
    *("webhook-url", "webhook-service", "service-accounts", "user-prefix", "members"),
    *("with", "skip", "release"),
)


def _texts(settings: Settings) -> dict[str, str]:
    """Return the settings by the names of their options; `--skip webhooks` is a step of one run."""
    return {
        _ACCOUNTS: str(settings.service_accounts).lower(),
        _PREFIX: settings.user_prefix,
        _MEMBERS: str(settings.members),
        _PARTS: " ".join(each for each in PARTS if each in settings.parts),
        _SKIP: " ".join(sorted(settings.skip - {Component.WEBHOOKS})),
        _RELEASE: settings.release,
        _URL: settings.url or "",
        _SERVICE: settings.address if settings.service else "",
    }


def record_item(settings: Settings) -> Item:
    """Return the ConfigMap of the settings.

    The caBundle of the webhook configurations changes at each rotation: the recorded authority is
    that of the last run which named one.
    """
    data = _texts(settings) | {_AUTHORITY: settings.authority.decode("ascii")}
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
        parts=frozenset(data.get(_PARTS, "").split()) & {*PARTS},
    )


def command(settings: Settings, *more: str) -> str:
    """Return the whole `hyperjob install` of these settings, with `more` options."""
    texts = _texts(settings) | {_SKIP: " ".join(sorted(settings.skip))}
    if settings.service_accounts:  # it excludes a prefix
        texts[_PREFIX] = PREFIX
    words, usual = ["hyperjob", "install"], _texts(DEFAULT)
    for name, text in texts.items():
        if text == "true":
            words.append(f"--{name}")
        elif text != usual[name]:
            words += [word for value in text.split() for word in (f"--{name}", value)]
    return shlex.join([*words, *more])


def differences(before: Settings, after: Settings) -> list[str]:
    """Return a line for each setting that changes: its option, its value before and after."""
    old, new = _texts(before), _texts(after)
    return [
        f"{name}: {old[name] or 'none'} -> {new[name] or 'none'}"
        for name in old
        if old[name] != new[name]
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
