"""Whether a member cluster is Ready, and why not. Pure."""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import condition, is_true, mapping, string


def is_ready(cluster: Object) -> bool:
    """Return whether a Cluster is Ready: Karmada's proxy reaches it."""
    return is_true(cluster, "Ready")


def why_not_ready(cluster: Object) -> str:
    """Return the message of a Cluster that is not Ready, else its reason."""
    ready = condition(mapping(cluster.get("status")), "Ready")
    return string(ready.get("message")) or string(ready.get("reason")) or "its status has no reason"
