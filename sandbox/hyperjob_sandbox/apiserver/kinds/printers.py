"""Cells of tables of built-in kinds, as `kubectl get` prints them.

`kinds.yaml` names the columns. Where the real server computes a cell from many fields, a function
here does so from those that the sandbox's objects have.
"""

from collections.abc import Callable
from datetime import datetime

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json, at
from hyperjob_sandbox.apiserver.printing import AGE_COLUMN, NAME_COLUMN, Column, age


def column(described: str | list[Json]) -> Column:
    """Build the column that an entry of `kinds.yaml` describes."""
    if described == "Age":
        return AGE_COLUMN
    if isinstance(described, str):
        return Column("Name", "string", NAME_COLUMN.cell, "name", priority=1)
    name, source, *more = described
    kind = more[0] if more else "string"
    empty = more[1] if len(more) > 1 else ""
    cell = _age_of(source) if isinstance(source, list) else _cell(source, empty)
    wide = name.startswith("(")
    return Column(name.strip("()") if wide else name, kind, cell, priority=int(wide))


def _age_of(paths: list[str]) -> Callable[[Object, datetime], Json]:
    """Return the age since the first of several times that is set."""

    def cell(obj: Object, now: datetime) -> Json:
        found = next((time for path in paths if (time := at(obj, path))), None)
        return age(found, now=now) if found else "<unknown>"

    return cell


def _cell(source: str, empty: Json) -> Callable[[Object, datetime], Json]:
    """Return the value of a field or of a cell below; `a/b` joins the values of two fields."""
    read = _CELLS.get(source)

    def cell(obj: Object, now: datetime) -> Json:
        del now
        if "/" in source:
            return "/".join(str(at(obj, path) or 0) for path in source.split("/"))
        value = at(obj, source) if read is None else read(obj)
        return empty if value is None else value

    return cell


def _containers(obj: Object) -> list[Object]:
    return at(obj, "status.containerStatuses") or []


def _pod_ready(obj: Object) -> str:
    ready = sum(1 for status in _containers(obj) if status.get("ready"))
    return f"{ready}/{len(at(obj, 'spec.containers') or ())}"


def _pod_status(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for status in _containers(obj):
        state = status.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        if reason:
            return str(reason)
    conditions = at(obj, "status.conditions") or ()
    if any(each.get("reason") == "SchedulingGated" for each in conditions):
        return "SchedulingGated"
    return str(at(obj, "status.reason") or at(obj, "status.phase") or "Unknown")


def _pod_restarts(obj: Object) -> str:
    return str(sum(status.get("restartCount", 0) for status in _containers(obj)))


def _node_status(obj: Object) -> str:
    ready = next((c for c in at(obj, "status.conditions") or () if c.get("type") == "Ready"), None)
    text = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return text + (",SchedulingDisabled" if at(obj, "spec.unschedulable") else "")


def _service_ports(obj: Object) -> str:
    ports = at(obj, "spec.ports") or ()
    return ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports)


def _event_object(obj: Object) -> str:
    about = obj.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


_CELLS: dict[str, Callable[[Object], Json]] = {
    "=data": lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()),
    "=event_object": _event_object,
    "=node_status": _node_status,
    "=pod_ready": _pod_ready,
    "=pod_restarts": _pod_restarts,
    "=pod_status": _pod_status,
    "=service_ports": _service_ports,
    "=webhooks": lambda obj: len(obj.get("webhooks") or ()),
}
