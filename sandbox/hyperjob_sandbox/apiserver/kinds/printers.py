"""Table columns of built-in kinds, as `kubectl get` prints them.

Where the real server computes a cell from many fields, this does so from those that the sandbox's
objects have. Kinds that are not listed have a name and an age.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing import AGE_COLUMN, NAME_COLUMN, Column, age

_NONE = "<none>"


def _at(obj: Object, path: str) -> Json:
    found: Json = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _column(
    name: str,
    read: str | Callable[[Object], Json],
    kind: str = "string",
    *,
    empty: Json = "",
    wide: bool = False,
) -> Column:
    """Build a column of a field, or of what a function makes of the object."""

    def cell(obj: Object, now: datetime) -> Json:
        del now
        found = _at(obj, read) if isinstance(read, str) else read(obj)
        return empty if found is None else found

    return Column(name, kind, cell, priority=int(wide))


def _since(name: str, *paths: str, wide: bool = False) -> Column:
    def cell(obj: Object, now: datetime) -> Json:
        found = next((time for path in paths if (time := _at(obj, path))), None)
        return age(found, now=now) if found else "<unknown>"

    return Column(name, "string", cell, priority=int(wide))


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values)) or _NONE


def _containers(obj: Object) -> list[Object]:
    return _at(obj, "status.containerStatuses") or []


def _pod_ready(obj: Object) -> str:
    ready = sum(1 for status in _containers(obj) if status.get("ready"))
    return f"{ready}/{len(_at(obj, 'spec.containers') or ())}"


def _pod_status(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for status in _containers(obj):
        state = status.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        if reason:
            return str(reason)
    return str(_at(obj, "status.reason") or _at(obj, "status.phase") or "Unknown")


def _node_status(obj: Object) -> str:
    ready = next((c for c in _at(obj, "status.conditions") or () if c.get("type") == "Ready"), None)
    text = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return text + (",SchedulingDisabled" if _at(obj, "spec.unschedulable") else "")


def _node_roles(obj: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    return _joined(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))


def _service_ports(obj: Object) -> str:
    ports = _at(obj, "spec.ports") or ()
    return _joined(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports)


def _event_object(obj: Object) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _event_source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return ", ".join(filter(None, (component, instance)))


def _event_count(obj: Object) -> int:
    count = _at(obj, "series.count") or obj.get("count") or obj.get("deprecatedCount")
    return int(count or 1)


def _role(obj: Object) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


_CREATED = (_column("Created At", "metadata.creationTimestamp", "date"),)
_BINDING = (_column("Role", _role), AGE_COLUMN)
_WEBHOOKS = (_column("Webhooks", lambda o: len(o.get("webhooks") or ()), "integer"), AGE_COLUMN)
_OWN: dict[str, tuple[Column, ...]] = {
    "clusterrolebindings": _BINDING,
    "clusterroles": _CREATED,
    "configmaps": (
        _column("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())),
        AGE_COLUMN,
    ),
    "customresourcedefinitions": _CREATED,
    "deployments": (
        _column(
            "Ready",
            lambda o: f"{_at(o, 'status.readyReplicas') or 0}/{_at(o, 'spec.replicas') or 0}",
        ),
        _column("Up-to-date", "status.updatedReplicas", "integer", empty=0),
        _column("Available", "status.availableReplicas", "integer", empty=0),
        AGE_COLUMN,
    ),
    "leases": (_column("Holder", "spec.holderIdentity"), AGE_COLUMN),
    "mutatingwebhookconfigurations": _WEBHOOKS,
    "namespaces": (_column("Status", "status.phase"), AGE_COLUMN),
    "nodes": (
        _column("Status", _node_status),
        _column("Roles", _node_roles),
        AGE_COLUMN,
        _column("Version", "status.nodeInfo.kubeletVersion"),
    ),
    "persistentvolumeclaims": (
        _column("Status", "status.phase"),
        _column("Volume", "spec.volumeName"),
        _column("Capacity", "status.capacity.storage"),
        AGE_COLUMN,
    ),
    "pods": (
        _column("Ready", _pod_ready),
        _column("Status", _pod_status),
        _column("Restarts", lambda o: str(sum(s.get("restartCount", 0) for s in _containers(o)))),
        AGE_COLUMN,
        _column("IP", "status.podIP", empty=_NONE, wide=True),
        _column("Node", "spec.nodeName", empty=_NONE, wide=True),
    ),
    "priorityclasses": (
        _column("Value", "value", "integer", empty=0),
        _column("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
        AGE_COLUMN,
    ),
    "rolebindings": _BINDING,
    "roles": _CREATED,
    "secrets": (
        _column("Type", "type"),
        _column("Data", lambda o: len(o.get("data") or ())),
        AGE_COLUMN,
    ),
    "services": (
        _column("Type", "spec.type"),
        _column("Cluster-IP", "spec.clusterIP", empty=_NONE),
        _column("Port(s)", _service_ports),
        AGE_COLUMN,
    ),
    "validatingwebhookconfigurations": _WEBHOOKS,
}
_EVENT = (
    _since(
        "Last Seen",
        "series.lastObservedTime",
        "lastTimestamp",
        "deprecatedLastTimestamp",
        "eventTime",
        "metadata.creationTimestamp",
    ),
    _column("Type", "type"),
    _column("Reason", "reason"),
    _column("Object", _event_object),
    _column("Subobject", "involvedObject.fieldPath", wide=True),
    _column("Source", _event_source, wide=True),
    _column("Message", lambda o: str(o.get("message") or o.get("note") or "").strip()),
    _since("First Seen", "firstTimestamp", "deprecatedFirstTimestamp", "eventTime", wide=True),
    _column("Count", _event_count, wide=True),
    Column("Name", "string", NAME_COLUMN.cell, "name", priority=1),
)


def columns_of(plural: str) -> tuple[Column, ...]:
    """Give the columns of a built-in resource."""
    return _EVENT if plural == "events" else (NAME_COLUMN, *_OWN.get(plural, (AGE_COLUMN,)))
