"""All objects of an installation, in the order in which `install` applies them.

CRDs come first, since the API server stores their objects only afterwards; webhook configurations
come last, since the API server then calls the webhooks for every HyperJob. Pure.
"""

from dataclasses import dataclass
from typing import Final

from hyperjob.install.definitions import definitions
from hyperjob.install.guard import certs_guard
from hyperjob.install.interpreters import interpreters
from hyperjob.install.objects import Component, Item, labelled
from hyperjob.install.policies import default_queue, queue_policy
from hyperjob.install.progress import ACCOUNT, progress
from hyperjob.install.rbac import account_user, rbac, subject
from hyperjob.install.tenancy import tenancy
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_rules.configuration import ServiceReference, configurations

ORDER: Final = tuple(Component)
PREFIX: Final = "hyperjob-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an installation.

    `url` or `service` is the address of the webhook, unless the webhooks are skipped. An empty
    `ca_bundle` (PEM) leaves `caBundle` unchanged, and `hyperjob-certs inject` writes it.
    The users of the processes are `user_prefix` with `controller`, `certs`, `webhook`, `ui` and
    `progress`; `service_accounts` makes all of them service accounts in the namespace of the Lease.
    `tenancy` requires a right to use queues, PriorityClasses and clusters. `progress` adds the user
    that reads the progress of trainings, `ui` the user of a shared web page. `secret_warnings` lets
    the webhook get Secrets, to warn of missing Secrets.
    """

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes = b""
    user_prefix: str = PREFIX
    service_accounts: bool = False
    tenancy: bool = False
    progress: bool = False
    ui: bool = False
    secret_warnings: bool = False
    skip: frozenset[Component] = frozenset()

    def user(self, process: str) -> str:
        """Return the user of a process, such as `controller`."""
        if self.service_accounts:
            return account_user(LEASE_NAMESPACE, f"{PREFIX}{process}")
        return f"{self.user_prefix}{process}"


def manifest(settings: Settings) -> list[Item]:
    """Return all objects in order; ValueError for an invalid setting."""
    items = [*definitions(), queue_policy(), default_queue(), *interpreters()]
    items += rbac(
        controller_user=settings.user("controller"),
        certs_user=settings.user("certs"),
        webhook_user=settings.user("webhook"),
        ui_user=settings.user("ui") if settings.ui else "",
        lease_namespace=LEASE_NAMESPACE,
        service_accounts=settings.service_accounts,
        more_accounts=(ACCOUNT,) if settings.progress else (),
        secret_warnings=settings.secret_warnings,
    )
    items += certs_guard(settings.user("certs"))
    items += tenancy(enabled=settings.tenancy)
    items += progress(subject(settings.user("progress")), enabled=settings.progress)
    if Component.WEBHOOKS not in settings.skip:
        items += _webhooks(settings)
    wanted = [item for item in items if item.part not in settings.skip]
    return sorted(wanted, key=lambda item: ORDER.index(item.part))


def _webhooks(settings: Settings) -> list[Item]:
    pair = configurations(url=settings.url, service=settings.service, ca_bundle=settings.ca_bundle)
    return [
        Item(
            part=Component.WEBHOOKS,
            resource=resource,
            object=labelled(configuration, component="webhook"),
        )
        for resource, configuration in zip(
            (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), pair, strict=True
        )
    ]
