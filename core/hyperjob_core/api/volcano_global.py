"""Detection of Volcano Global in a Karmada API server, by its webhook for ResourceBindings. Pure.

Its dispatcher is a process in the host cluster, without an object in the Karmada API server.
"""

from collections.abc import Iterable
from typing import Final

from hyperjob_core.api.meta import Object

_GROUP: Final = "work.karmada.io"
_PLURAL: Final = "resourcebindings"
_PATH: Final = "/resourcebindings/mutate"


def queues_bindings(configurations: Iterable[Object]) -> bool:
    """Return whether a MutatingWebhookConfiguration sends ResourceBindings to Volcano Global."""
    return any(
        _is_volcano_globals(webhook)
        for configuration in configurations
        for webhook in configuration.get("webhooks") or []
    )


def _is_volcano_globals(webhook: Object) -> bool:
    """Return whether a webhook has Volcano Global's path, and rules for ResourceBindings."""
    client = webhook.get("clientConfig") or {}
    path = str(client.get("url") or (client.get("service") or {}).get("path") or "")
    return path.endswith(_PATH) and any(
        _GROUP in (rule.get("apiGroups") or []) and _PLURAL in (rule.get("resources") or [])
        for rule in webhook.get("rules") or []
    )
