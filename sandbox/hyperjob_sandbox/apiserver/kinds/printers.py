"""Table columns of built-in kinds, as `kubectl get` prints them.

Where the real server computes a cell from many fields, this does so from those that the sandbox's
objects have.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing.columns import AGE_COLUMN, NAME_COLUMN, Column
from hyperjob_sandbox.apiserver.printing.jsonpath import age

_NONE = "<none>"
_UNSET = "<unset>"


def _at(obj: Object, path: str) -> Json:
    found: Json = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _path(
    name: str, path: str, kind: str = "string", *, empty: Json = "", wide: bool = False
) -> Column:
    def cell(obj: Object, now: datetime) -> Json:
        del now
        found = _at(obj, path)
        return empty if found is None else found

    return Column(name, kind, cell, priority=int(wide))


def _made(
    name: str, make: Callable[[Object], Json], kind: str = "string", *, wide: bool = False
) -> Column:
    def cell(obj: Object, now: datetime) -> Json:
        del now
        return make(obj)

    return Column(name, kind, cell, priority=int(wide))


def _since(name: str, *paths: str, wide: bool = False) -> Column:
    def cell(obj: Object, now: datetime) -> Json:
        for path in paths:
            if found := _at(obj, path):
                return age(found, now=now)
        return "<unknown>"

    return Column(name, "string", cell, priority=int(wide))


def _created(obj: Object, now: datetime) -> Json:
    del now
    return obj["metadata"].get("creationTimestamp")


CREATED_COLUMN = Column("Created At", "date", _created)


def _joined(values: Iterable[str]) -> str:
    return ",".join(values) or _NONE


def _count(path: str) -> Callable[[Object], int]:
    return lambda obj: len(_at(obj, path) or ())


def _of(done: str, wanted: str) -> Callable[[Object], str]:
    return lambda obj: f"{_at(obj, done) or 0}/{_at(obj, wanted) or 0}"


def _selector(path: str) -> Callable[[Object], str]:
    def make(obj: Object) -> str:
        return _joined(f"{key}={value}" for key, value in sorted((_at(obj, path) or {}).items()))

    return make


def _pod_ready(obj: Object) -> str:
    statuses = _at(obj, "status.containerStatuses") or ()
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(_at(obj, 'spec.containers') or ())}"


def _pod_status(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for status in _at(obj, "status.containerStatuses") or ():
        state = status.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        if reason:
            return str(reason)
    return str(_at(obj, "status.reason") or _at(obj, "status.phase") or "Unknown")


def _pod_restarts(obj: Object) -> str:
    statuses = _at(obj, "status.containerStatuses") or ()
    return str(sum(status.get("restartCount", 0) for status in statuses))


def _node_status(obj: Object) -> str:
    ready = next((c for c in _at(obj, "status.conditions") or () if c.get("type") == "Ready"), None)
    text = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return text + (",SchedulingDisabled" if _at(obj, "spec.unschedulable") else "")


def _node_roles(obj: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    return _joined(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))


def _service_ports(obj: Object) -> str:
    def show(port: Object) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"

    return _joined(map(show, _at(obj, "spec.ports") or ()))


def _external_address(obj: Object) -> str:
    kind = _at(obj, "spec.type")
    if kind == "ExternalName":
        return str(_at(obj, "spec.externalName") or "")
    addresses = list(_at(obj, "spec.externalIPs") or ())
    if kind == "LoadBalancer":
        ingress = _at(obj, "status.loadBalancer.ingress") or ()
        addresses += [str(item.get("ip") or item.get("hostname")) for item in ingress]
        return ",".join(addresses) or "<pending>"
    return _joined(addresses)


def _job_status(obj: Object) -> str:
    for condition in _at(obj, "status.conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in (
            "Complete",
            "Failed",
            "Suspended",
        ):
            return str(condition["type"])
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else "Running"


def _rules(field: str, key: str) -> Callable[[Object], str]:
    def make(obj: Object) -> str:
        return _joined(str(item.get(key)) for item in _at(obj, field) or ())

    return make


def _role(obj: Object) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


def _event_object(obj: Object) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _event_message(obj: Object) -> str:
    return str(obj.get("message") or obj.get("note") or "").strip()


def _event_source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return ", ".join(filter(None, (component, instance)))


def _event_count(obj: Object) -> int:
    series = obj.get("series") or {}
    return int(series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1)


_LAST_SEEN = (
    "series.lastObservedTime",
    "lastTimestamp",
    "deprecatedLastTimestamp",
    "eventTime",
    "metadata.creationTimestamp",
)
_FIRST_SEEN = ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
_EVENT = (
    _since("Last Seen", *_LAST_SEEN),
    _path("Type", "type"),
    _path("Reason", "reason"),
    _made("Object", _event_object),
    _path("Subobject", "involvedObject.fieldPath", wide=True),
    _made("Source", _event_source, wide=True),
    _made("Message", _event_message),
    _since("First Seen", *_FIRST_SEEN, wide=True),
    _made("Count", _event_count, wide=True),
    Column("Name", "string", NAME_COLUMN.cell, "name", priority=1),
)
_REPLICAS = (
    _made("Ready", _of("status.readyReplicas", "spec.replicas")),
    _path("Up-to-date", "status.updatedReplicas", "integer", empty=0),
    _path("Available", "status.availableReplicas", "integer", empty=0),
)


def _with_name(*columns: Column) -> tuple[Column, ...]:
    return (NAME_COLUMN, *columns)


_CREATED = _with_name(CREATED_COLUMN)
_BINDING = _with_name(_made("Role", _role), AGE_COLUMN)
_WEBHOOKS = _with_name(_made("Webhooks", _count("webhooks"), "integer"), AGE_COLUMN)
DEFAULT_COLUMNS = _with_name(AGE_COLUMN)

BUILTIN_COLUMNS: dict[str, tuple[Column, ...]] = {
    "clusterroles": _CREATED,
    "configmaps": _with_name(
        _made("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())),
        AGE_COLUMN,
    ),
    "clusterrolebindings": _BINDING,
    "customresourcedefinitions": _CREATED,
    "deployments": _with_name(
        *_REPLICAS,
        AGE_COLUMN,
        _made("Containers", _rules("spec.template.spec.containers", "name"), wide=True),
        _made("Images", _rules("spec.template.spec.containers", "image"), wide=True),
        _made("Selector", _selector("spec.selector.matchLabels"), wide=True),
    ),
    "events": _EVENT,
    "jobs": _with_name(
        _made("Status", _job_status),
        _made("Completions", _of("status.succeeded", "spec.completions")),
        _since("Duration", "status.startTime"),
        AGE_COLUMN,
    ),
    "leases": _with_name(_path("Holder", "spec.holderIdentity"), AGE_COLUMN),
    "mutatingwebhookconfigurations": _WEBHOOKS,
    "namespaces": _with_name(_path("Status", "status.phase"), AGE_COLUMN),
    "nodes": _with_name(
        _made("Status", _node_status),
        _made("Roles", _node_roles),
        AGE_COLUMN,
        _path("Version", "status.nodeInfo.kubeletVersion"),
    ),
    "persistentvolumeclaims": _with_name(
        _path("Status", "status.phase"),
        _path("Volume", "spec.volumeName"),
        _path("Capacity", "status.capacity.storage"),
        _made("Access Modes", lambda o: ",".join(_at(o, "status.accessModes") or ())),
        _path("StorageClass", "spec.storageClassName"),
        _path("VolumeAttributesClass", "spec.volumeAttributesClassName", empty=_UNSET),
        AGE_COLUMN,
    ),
    "pods": _with_name(
        _made("Ready", _pod_ready),
        _made("Status", _pod_status),
        _made("Restarts", _pod_restarts),
        AGE_COLUMN,
        _path("IP", "status.podIP", empty=_NONE, wide=True),
        _path("Node", "spec.nodeName", empty=_NONE, wide=True),
        _path("Nominated Node", "status.nominatedNodeName", empty=_NONE, wide=True),
        _made("Readiness Gates", lambda _: _NONE, wide=True),
    ),
    "priorityclasses": _with_name(
        _path("Value", "value", "integer", empty=0),
        _made("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
        AGE_COLUMN,
        _path("PreemptionPolicy", "preemptionPolicy"),
    ),
    "rolebindings": _BINDING,
    "roles": _CREATED,
    "secrets": _with_name(
        _path("Type", "type"), _made("Data", _count("data"), "string"), AGE_COLUMN
    ),
    "services": _with_name(
        _path("Type", "spec.type"),
        _path("Cluster-IP", "spec.clusterIP", empty=_NONE),
        _made("External-IP", _external_address),
        _made("Port(s)", _service_ports),
        AGE_COLUMN,
        _made("Selector", _selector("spec.selector"), wide=True),
    ),
    "validatingwebhookconfigurations": _WEBHOOKS,
}
