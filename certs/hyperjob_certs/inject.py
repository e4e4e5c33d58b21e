"""The injection of the trusted authorities into `clientConfig.caBundle` of webhook configurations.

An equal caBundle is not written again.
"""

from base64 import b64encode
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import INSTALLER, ForeignObjectError, manager_of, named
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Conflict, NotFound
from hyperjob_core.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

TARGETS: Final = ((MUTATING_WEBHOOKS, MUTATING_NAME), (VALIDATING_WEBHOOKS, VALIDATING_NAME))

ATTEMPTS: Final = 5


class NothingToInject(Exception):  # noqa: N818 - the state of the server, not a fault
    """A webhook configuration does not exist; the text has the next step."""


async def inject(kube: Kube, *, ca_bundle: bytes) -> list[str]:
    """Set the bundle (PEM) in both configurations; return the names of those that changed.

    Raises `NothingToInject` if a configuration is missing, after the update of the others, and
    ForeignObjectError for a configuration that another program created.
    """
    changed, missing = [], []
    for resource, name in TARGETS:
        try:
            if await _inject_one(kube, resource, name, ca_bundle=ca_bundle):
                changed.append(name)
        except NotFound:
            missing.append(f"{resource.kind} {name}")
    if missing:
        raise NothingToInject(f"not found: {', '.join(missing)}; apply the configurations first")
    return changed


def with_bundle(configuration: Object, *, ca_bundle: bytes) -> Object:
    """Return the configuration with the bundle in every webhook; the same object if it has it."""
    encoded = b64encode(ca_bundle).decode("ascii")
    webhooks = configuration.get("webhooks") or []
    if all(hook["clientConfig"].get("caBundle") == encoded for hook in webhooks):
        return configuration
    return {
        **configuration,
        "webhooks": [
            {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": encoded}}
            for hook in webhooks
        ],
    }


async def _inject_one(kube: Kube, resource: Resource, name: str, *, ca_bundle: bytes) -> bool:
    """Write the bundle into one configuration, again after a conflict; return whether it did."""
    for attempt in range(1, ATTEMPTS + 1):
        live = await kube.get(resource, name)
        if manager_of(live) != INSTALLER:
            raise ForeignObjectError(
                f"{named(resource.kind, live)} exists, and hyperjob install did not create it:"
                " delete it and run `hyperjob install`"
            )
        wanted = with_bundle(live, ca_bundle=ca_bundle)
        if wanted is live:
            return False
        try:
            await kube.replace(resource, wanted)
        except Conflict:
            if attempt == ATTEMPTS:
                raise
            continue
        return True
    return False
