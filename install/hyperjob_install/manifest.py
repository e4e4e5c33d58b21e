"""All objects of an installation, in the order in which `install` applies them.

CRDs come first, since the API server stores their objects only afterwards; webhook configurations
come last, since the API server then calls the webhooks for every HyperJob. Pure.
"""

from typing import Final

from hyperjob_core.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from hyperjob_install.definitions import definitions
from hyperjob_install.guard import certs_guard
from hyperjob_install.interpreters import interpreters
from hyperjob_install.members import members
from hyperjob_install.objects import Component, Item, labelled
from hyperjob_install.policies import default_queue, priority_class_policies, queue_policy
from hyperjob_install.rbac import rbac, subject
from hyperjob_install.record import record_item
from hyperjob_install.settings import Settings
from hyperjob_install.tenancy import tenancy
from hyperjob_rules.configuration import configurations

ORDER: Final = tuple(Component)


def manifest(settings: Settings) -> list[Item]:
    """Return all objects in order; ValueError for an invalid setting."""
    items = [*definitions(), queue_policy(), default_queue(), *interpreters()]
    items += priority_class_policies()
    items += rbac(settings)
    items.append(record_item(settings))
    items += certs_guard(settings.user("certs"))
    items += tenancy(enabled=settings.tenancy)
    items += members(subject(settings.user("members")), settings.members)
    if Component.WEBHOOKS not in settings.skip:
        items += _webhooks(settings)
    wanted = [item for item in items if item.part not in settings.skip]
    return sorted(wanted, key=lambda item: ORDER.index(item.part))


def _webhooks(settings: Settings) -> list[Item]:
    pair = configurations(
        url=settings.url,
        service=settings.service,
        ca_bundle=settings.ca_bundle,
        trainjobs=settings.trainjobs,
    )
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
