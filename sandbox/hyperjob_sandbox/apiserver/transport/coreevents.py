"""Events: core/v1 and events.k8s.io/v1 are two views of one stored object.

The stored form is the core one; both views write their empty times.
"""

from hyperjob_core.api.meta import Object

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
# What is written for absent fields.
_ALWAYS: Object = {"eventTime": None, "source": {}, "firstTimestamp": None, "lastTimestamp": None}


def read(obj: Object, group: str) -> Object:
    """Give a stored event in the fields of a group."""
    if group != GROUP:
        return {**_ALWAYS, **obj}
    result: Object = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": obj["metadata"],
    }
    for name, core in _PAIRS.items():
        value = obj.get(core, _ALWAYS.get(core))
        if core in _ALWAYS or value not in (None, ""):
            result[name] = value
    return result


def write(obj: Object, group: str) -> Object:
    """Give an event of a group in its stored form."""
    if group != GROUP:
        return {**obj, "apiVersion": "v1"}
    fields = {core: obj[name] for name, core in _PAIRS.items() if obj.get(name) is not None}
    for name in {"involvedObject", "related"} & fields.keys():
        given = fields[name]
        fields[name] = {key: given[key] for key in _REFERENCE if key in given}
    return {"kind": "Event", "apiVersion": "v1", "metadata": obj["metadata"], **fields}
