"""Field ownership of a request's write: whose manager, which types, which fields do not count."""

from functools import lru_cache

import orjson

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.ownership.apply import apply_patch, track_update
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo
from hyperjob_sandbox.apiserver.state.clock import now
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Call

_DEDUCED = TypeInfo.deduced()


def track(old: Object | None, new: Object, call: Call) -> Object:
    """Return the object with its managedFields brought up to date."""
    tracked = track_update(
        old,
        new,
        manager=call.field_manager,
        api_version=call.resource.api_version,
        types=types_of(call.resource),
        now=now(),
        subresource=call.info.subresource,
        reset=_reset(call),
    )
    return _shared_fields(tracked)


def apply(live: Object | None, applied: Object, call: Call) -> Object:
    """Return the live object with an applied configuration merged in; raise ApplyConflict."""
    merged = apply_patch(
        live,
        applied,
        manager=call.field_manager,
        force=call.info.flag("force"),
        types=types_of(call.resource),
        now=now(),
        subresource=call.info.subresource,
        reset=_reset(call),
    )
    return _shared_fields(merged)


def types_of(resource: ResourceInfo) -> TypeInfo:
    """Give the types of a resource's fields, from its schema where it has one."""
    return _DEDUCED if resource.schema is None else resource.schema.types


def _reset(call: Call) -> tuple[str, ...]:
    if call.info.subresource == "status":
        return ("metadata", "spec") if call.resource.custom else ("spec",)
    return ("status",) if call.resource.has_status else ()


def _shared_fields(obj: Object) -> Object:
    """Let equal field sets be one value: thousands of objects are written in the same few shapes.

    What is stored never changes in place, so sharing is safe; it spares memory and the garbage
    collector, for which small dictionaries are the dearest part of an object.
    """
    for entry in obj["metadata"].get("managedFields") or ():
        if "fieldsV1" in entry:
            entry["fieldsV1"] = _shared(orjson.dumps(entry["fieldsV1"]))
    return obj


@lru_cache(maxsize=2048)
def _shared(fields: bytes) -> Object:
    found: Object = orjson.loads(fields)
    return found
