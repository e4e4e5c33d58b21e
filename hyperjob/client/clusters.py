"""Whether a member cluster is Ready, and why not. Pure."""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import condition, mapping, string


def is_ready(cluster: Object) -> bool:
    """Return whether a Cluster is Ready: Karmada's proxy reaches it."""
    return _ready(cluster).get("status") == "True"


def why_not_ready(cluster: Object) -> str:
    """Return the message of a Cluster that is not Ready, else its reason."""
    ready = _ready(cluster)
    return string(ready.get("message")) or string(ready.get("reason")) or "its status has no reason"


def _ready(cluster: Object) -> Object:
    return condition(mapping(cluster.get("status")), "Ready")
