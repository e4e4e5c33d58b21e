"""What messages say of member clusters: whether one is Ready, and which device none has. Pure."""

from collections.abc import Iterable

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import condition, mapping, string
from hyperjob_core.hints import nearest
from hyperjob_engine.reasons.shortage import NoDevice, no_device_text


def is_ready(cluster: Object) -> bool:
    """Return whether a Cluster is Ready: Karmada's proxy reaches it."""
    return _ready(cluster).get("status") == "True"


def why_not_ready(cluster: Object) -> str:
    """Return the message of a Cluster that is not Ready, else its reason."""
    ready = _ready(cluster)
    return string(ready.get("message")) or string(ready.get("reason")) or "its status has no reason"


def _ready(cluster: Object) -> Object:
    return condition(mapping(cluster.get("status")), "Ready")


def no_device(name: str, devices: Iterable[str]) -> str:
    """Return a message that no cluster has `name`; `devices` are the devices of all clusters."""
    return no_device_text(NoDevice(name, nearest(name, devices) or ""))
