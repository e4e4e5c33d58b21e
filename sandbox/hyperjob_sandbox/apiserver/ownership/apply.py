"""Server-side apply, and the field ownership that every other write leaves behind.

Inputs are never changed, and the result's managedFields are complete; `apply_patch` and
`track_update` are pure, `apply` and `track` are they for a request. Defaults, validation and
admission come after, in the caller.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership import typed
from hyperjob_sandbox.apiserver.ownership.fields import EMPTY, FieldPath, print_path
from hyperjob_sandbox.apiserver.ownership.managedfields import (
    Manager,
    Managers,
    Owned,
    decode,
    encode,
)
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Call

_SYSTEM_META: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_STRIPPED: Final = frozenset(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _SYSTEM_META),
    ]
)
_OFF: Final[tuple[Json, ...]] = ([], [{}])
"""The managedFields with which a writer switches tracking off."""


class ApplyConflict(errors.ApiError):
    """Fields of an apply that other managers hold (409)."""

    def __init__(self, conflicts: Iterable[tuple[Manager, FieldPath]]) -> None:
        self.conflicts = sorted(conflicts, key=lambda found: (str(found[0]), found[1]))
        causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager}",
                "field": print_path(path),
            }
            for manager, path in self.conflicts
        ]
        super().__init__(errors.failure(409, "Conflict", self._message(), causes=causes))

    def _message(self) -> str:
        if len(self.conflicts) == 1:
            manager, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {manager}: {print_path(path)}"
        lines: list[str] = []
        by_manager: dict[Manager, list[FieldPath]] = {}
        for manager, path in self.conflicts:
            by_manager.setdefault(manager, []).append(path)
        for manager, paths in by_manager.items():
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {print_path(path)}" for path in paths]
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)


def apply_patch(
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    types: TypeInfo,
    now: str,
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> Object:
    """Merge an applied configuration into the live object; raise ApplyConflict.

    `reset` names the top-level fields that this endpoint cannot set: they have no owner.
    """
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    try:
        typed.check(applied, types)
    except typed.MisfitError as error:
        why = f"failed to create typed patch object ({_identity(applied)}): {error}"
        raise errors.plain_internal(why) from None
    old = _without_managed_fields(live) if live is not None else _empty(applied)
    managers = decode((live or {}).get("metadata", {}).get("managedFields"))
    if managers is None:
        raise errors.plain_internal("failed to decode managed fields")
    if live is not None and not managers:
        # An object without owners was written before the first apply.
        version = live.get("apiVersion", "")
        first = Manager("before-first-apply", "Update", version, subresource)
        _update(managers, first, typed.compare(_empty(live), old, types), now)
    applier = Manager(manager, "Apply", "", subresource)
    last = managers.get(applier, Owned())
    mine = typed.without(typed.to_fields(applied, types), reset)
    managers[applier] = Owned(mine, applied.get("apiVersion", ""), last.time)
    merged: Object = typed.merge(old, applied, types)
    if last.fields:
        # What the applier applied last time, does not now, and no other manager owns, goes.
        owned = EMPTY.union(*(each.fields for each in managers.values()))
        gone = typed.with_parents(last.fields, types) - typed.with_parents(owned, types)
        merged = typed.remove(merged, gone, types)
    _take(managers, applier, typed.compare(old, merged, types, ignored=reset), force=force)
    changed = not jsonvalue.equal(merged, old)
    entry = managers.pop(applier)
    if kept := entry.fields - _STRIPPED:
        managers[applier] = replace(entry, fields=kept, time=now if changed else last.time)
    return _with_managed_fields(merged, managers)


def _take(managers: Managers, taker: Manager, change: typed.Comparison, *, force: bool) -> None:
    """Give changed fields to the writer; raise ApplyConflict where others hold them."""
    changed = change.modified | change.added
    others = [manager for manager in managers if manager != taker]
    conflicts = {manager: managers[manager].fields & changed for manager in others}
    if any(conflicts.values()) and not force:
        raise ApplyConflict((m, path) for m, held in conflicts.items() for path in held)
    for manager in others:
        entry = managers[manager]
        left = entry.fields - conflicts[manager] - change.removed
        if not left:
            del managers[manager]
        elif len(left) < len(entry.fields):
            managers[manager] = replace(entry, fields=left)


def track_update(
    live: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    types: TypeInfo,
    now: str,
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> Object:
    """Return the new object with the ownership that a create, update or patch leaves."""
    given = (new.get("metadata") or {}).get("managedFields")
    off = given in _OFF
    managers: Managers | None = None
    if not subresource and given is not None:
        managers = {} if off else decode(given)
    if managers is None or not (off or managers):
        managers = decode((live or {}).get("metadata", {}).get("managedFields")) or {}
    stripped = _without_managed_fields(new)
    if live is not None and not managers:
        return stripped
    old = _without_managed_fields(live) if live is not None else _empty(new)
    updater = Manager(manager or "unknown", "Update", api_version, subresource)
    _update(managers, updater, typed.compare(old, stripped, types, ignored=reset), now)
    return _with_managed_fields(stripped, managers)


def _update(managers: Managers, updater: Manager, change: typed.Comparison, now: str) -> None:
    held = managers.pop(updater, Owned())
    _take(managers, updater, change, force=True)
    taken = (change.modified | change.added) - _STRIPPED
    # A writer keeps what it set before, and its time where it sets nothing new.
    if kept := (held.fields - change.removed) | taken:
        time = now if taken else held.time
        managers[updater] = Owned(kept, updater.api_version, time)


def keep_times(old: Object, new: Object) -> Object:
    """Return the new object with the old managedFields where nothing but their times differs."""
    before = (old.get("metadata") or {}).get("managedFields")
    after = (new.get("metadata") or {}).get("managedFields")
    if not before or not after or before == after or len(before) != len(after):
        return new
    if [_timeless(e) for e in before] != [_timeless(e) for e in after]:
        return new
    if not jsonvalue.equal(_without_managed_fields(old), _without_managed_fields(new)):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": before}}


def _timeless(entry: Object) -> Object:
    return {key: value for key, value in entry.items() if key != "time"}


def _identity(obj: Object) -> str:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return f"{name}; {obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"


def _empty(obj: Object) -> Object:
    return {key: obj[key] for key in ("apiVersion", "kind") if key in obj}


def _without_managed_fields(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {
        **obj,
        "metadata": {key: item for key, item in metadata.items() if key != "managedFields"},
    }


def _with_managed_fields(obj: Object, managers: Managers) -> Object:
    metadata = {
        key: item for key, item in (obj.get("metadata") or {}).items() if key != "managedFields"
    }
    if managers:
        metadata["managedFields"] = encode(managers)
    return {**obj, "metadata": metadata} if metadata or "metadata" in obj else obj


_DEDUCED = TypeInfo.deduced()


def track(old: Object | None, new: Object, call: Call) -> Object:
    """Return the object with its managedFields brought up to date."""
    return track_update(
        old,
        new,
        manager=call.field_manager,
        api_version=call.resource.api_version,
        types=types_of(call.resource),
        now=wire_now(),
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
        now=wire_now(),
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
