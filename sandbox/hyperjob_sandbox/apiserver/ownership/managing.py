"""Field ownership of a request's write: whose manager, which types, which fields do not count."""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.ownership.apply import apply_patch, track_update
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo
from hyperjob_sandbox.apiserver.state.clock import now
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Call

_DEDUCED = TypeInfo.deduced()


def track(old: Object | None, new: Object, call: Call) -> Object:
    """Return the object with its managedFields brought up to date."""
    return track_update(
        old,
        new,
        manager=call.field_manager,
        api_version=call.resource.api_version,
        types=types_of(call.resource),
        now=now(),
        subresource=call.info.subresource,
        reset=_reset(call),
    )


def apply(live: Object | None, applied: Object, call: Call) -> Object:
    """Return the live object with an applied configuration merged in; raise ApplyConflict."""
    return apply_patch(
        live,
        applied,
        manager=call.field_manager,
        force=call.info.flag("force"),
        types=types_of(call.resource),
        now=now(),
        subresource=call.info.subresource,
        reset=_reset(call),
    )


def types_of(resource: ResourceInfo) -> TypeInfo:
    """Give the types of a resource's fields, from its schema where it has one."""
    return _DEDUCED if resource.schema is None else resource.schema.types


def _reset(call: Call) -> tuple[str, ...]:
    if call.info.subresource == "status":
        return ("metadata", "spec") if call.resource.custom else ("spec",)
    return ("status",) if call.resource.has_status else ()
