"""Events: core/v1 and events.k8s.io/v1 are two views of one stored object.

The stored form is the core one. Fields keep the order of their Go structs, nulls included, because
both forms write their empty times.
"""

from hyperjob.api.meta import Object

GROUP = "events.k8s.io"
EVENTS = ("", "events")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
# The field of events.k8s.io, and that of core.
_PAIRS = {
    "eventTime": "eventTime",
    "series": "series",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "note": "message",
    "type": "type",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_ORDER = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count"),
    *("type", "eventTime", "series", "action", "related"),
    *("reportingComponent", "reportingInstance"),
)
# What is written for absent fields: by both forms, and by core alone.
_ALWAYS: Object = {"eventTime": None, "source": {}, "firstTimestamp": None, "lastTimestamp": None}
_CORE_ALWAYS: Object = {
    **_ALWAYS,
    "reportingComponent": "",
    "reportingInstance": "",
    "involvedObject": {},
}


def read(obj: Object, group: str) -> Object:
    """Give a stored event in the fields of a group."""
    newer = group == GROUP
    names = _PAIRS if newer else {name: name for name in _CORE_ORDER}
    always = _ALWAYS if newer else _CORE_ALWAYS
    version = "events.k8s.io/v1" if newer else "v1"
    result: Object = {"kind": "Event", "apiVersion": version, "metadata": obj["metadata"]}
    for name, core in names.items():
        value = obj.get(core)
        if value is None and core in always:
            result[name] = always[core]
        elif value is not None and not (newer and value == ""):
            result[name] = _ordered(value) if core in ("involvedObject", "related") else value
    return result


def write(obj: Object, group: str) -> Object:
    """Give an event of a group in its stored form."""
    if group != GROUP:
        return {**obj, "apiVersion": "v1"}
    fields = {core: obj[name] for name, core in _PAIRS.items() if obj.get(name) is not None}
    return {"kind": "Event", "apiVersion": "v1", "metadata": obj["metadata"], **fields}


def _ordered(reference: Object) -> Object:
    result = {key: reference[key] for key in _REFERENCE if key in reference}
    return {**result, **{key: reference[key] for key in reference if key not in result}}
