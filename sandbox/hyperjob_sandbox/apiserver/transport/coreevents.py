"""Events: core/v1 and events.k8s.io/v1 are two views of one stored object.

The stored form is the core one. Fields keep the order of their Go structs, nulls included, because
both forms write their empty times.
"""

from hyperjob.api.meta import Object

GROUP = "events.k8s.io"
EVENTS = ("", "events")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
# The field of events.k8s.io, the field of core, the value that is written for an absent one.
_PAIRS = (
    ("eventTime", "eventTime"),
    ("series", "series"),
    ("reportingController", "reportingComponent"),
    ("reportingInstance", "reportingInstance"),
    ("action", "action"),
    ("reason", "reason"),
    ("regarding", "involvedObject"),
    ("related", "related"),
    ("note", "message"),
    ("type", "type"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_CORE_ORDER = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "series",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)
_ALWAYS: Object = {
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
}
_CORE_ONLY_IF_SET = frozenset({"reportingController", "reportingInstance", "regarding"})


def read(obj: Object, group: str) -> Object:
    """Give a stored event in the fields of a group."""
    if group == GROUP:
        result: Object = {"kind": "Event", "apiVersion": "events.k8s.io/v1"}
        result["metadata"] = obj["metadata"]
        for name, core in _PAIRS:
            value = obj.get(core)
            if value is None and core in _ALWAYS and name not in _CORE_ONLY_IF_SET:
                value = _ALWAYS[core]
                result[name] = value
            elif value not in (None, ""):
                result[name] = _ordered(value) if name in ("regarding", "related") else value
        return result
    result = {"kind": "Event", "apiVersion": "v1", "metadata": obj["metadata"]}
    for core in _CORE_ORDER:
        value = obj.get(core)
        if value is None and core in _ALWAYS:
            value = _ALWAYS[core]
        elif value is None:
            continue
        result[core] = _ordered(value) if core in ("involvedObject", "related") else value
    return result


def write(obj: Object, group: str) -> Object:
    """Give an event of a group in its stored form."""
    if group != GROUP:
        return {**obj, "apiVersion": "v1"}
    result: Object = {"kind": "Event", "apiVersion": "v1", "metadata": obj["metadata"]}
    for name, core in _PAIRS:
        if obj.get(name) is not None:
            result[core] = obj[name]
    return result


def _ordered(reference: Object) -> Object:
    result = {key: reference[key] for key in _REFERENCE if key in reference}
    return {**result, **{key: reference[key] for key in reference if key not in result}}
