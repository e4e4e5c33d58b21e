"""Server-side apply, and the field ownership that every other write leaves behind.

Inputs are never changed. Defaults, validation and admission come after, in the caller.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.ownership import typed
from hyperjob_sandbox.apiserver.ownership.fields import EMPTY, FieldPath, Fields, print_path
from hyperjob_sandbox.apiserver.ownership.managedfields import (
    Manager,
    Managers,
    Owned,
    decode,
    encode,
)
from hyperjob_sandbox.apiserver.schema.typeinfo import BUILTIN, TypeInfo
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.transport.call import Call

_SYSTEM_META: Final = (
    *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"),
    *("generation", "managedFields", "resourceVersion"),
)
_STRIPPED: Final = frozenset(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _SYSTEM_META),
    ]
)


class ApplyConflict(errors.ApiError):
    """Fields of an apply that other managers hold (409)."""

    def __init__(self, conflicts: Iterable[tuple[Manager, FieldPath]]) -> None:
        found = sorted(conflicts, key=lambda conflict: (str(conflict[0]), conflict[1]))
        causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager}",
                "field": print_path(path),
            }
            for manager, path in found
        ]
        if len(found) == 1:
            text = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
        else:
            lines: list[str] = []
            for manager, held in groupby(found, key=itemgetter(0)):
                lines.append(f"conflicts with {manager}:")
                lines += [f"- {print_path(path)}" for _, path in held]
            text = f"{len(found)} conflicts: " + "\n".join(lines)
        message = f"Apply failed with {text}"
        super().__init__(errors.failure(409, "Conflict", message, causes=causes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes to a resource, and through which path."""

    manager: str
    api_version: str
    types: TypeInfo
    now: str
    subresource: str = ""
    reset: tuple[str, ...] = ()
    """The top-level fields that cannot be set through this path: the writer does not own them."""
    force: bool = False
    """Whether an apply takes fields from other managers."""

    @classmethod
    def of(cls, call: Call) -> "Writer":
        """Return the writer of a request, at this moment."""
        resource, subresource = call.resource, call.info.subresource
        reset: tuple[str, ...] = ("status",) if resource.has_status else ()
        if subresource == "status":
            reset = ("metadata", "spec") if resource.custom else ("spec",)
        return cls(
            manager=call.field_manager,
            api_version=resource.api_version,
            types=BUILTIN if resource.schema is None else resource.schema.node,
            now=wire_now(),
            subresource=subresource,
            reset=reset,
            force=call.info.flag("force"),
        )


def apply(live: Object | None, applied: Object, writer: Writer) -> Object:
    """Merge an applied configuration into the live object; raise ApplyConflict."""
    types, metadata = writer.types, _metadata(applied)
    if metadata.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    try:
        typed.check(applied, types)
    except typed.MisfitError as error:
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        kind = f"{applied.get('apiVersion', '')}, Kind={applied.get('kind', '')}"
        why = f"failed to create typed patch object ({name}; {kind}): {error}"
        raise errors.failed(500, "", why) from None
    old, managers = _before(live, applied)
    applier = Manager(writer.manager, "Apply", "", writer.subresource)
    last = managers.get(applier, Owned())
    own = {name: value for name, value in applied.items() if name not in writer.reset}
    managers[applier] = Owned(typed.to_fields(own, types), writer.api_version, last.time)
    merged: Object = typed.merge(old, applied, types)
    if last.fields:
        # What the applier applied last time, does not now, and no other manager owns, goes.
        owned = EMPTY.union(*(each.fields for each in managers.values()))
        gone = typed.with_parents(last.fields) - typed.with_parents(owned)
        merged = typed.remove(merged, gone, types)
    changed, removed = typed.compare(old, merged, types, ignored=writer.reset)
    _take(managers, applier, changed, removed, force=writer.force)
    entry = managers.pop(applier)
    if kept := entry.fields - _STRIPPED:
        time = last.time if jsonvalue.equal(merged, old) else writer.now
        managers[applier] = replace(entry, fields=kept, time=time)
    return _with_managers(merged, managers)


def track(live: Object | None, new: Object, writer: Writer) -> Object:
    """Return the new object with the ownership that a create, update or patch leaves."""
    old, managers = _before(live, new)
    if not writer.subresource:
        managers = decode(_metadata(new).get("managedFields")) or managers
    stripped = _with_managers(new, {})
    if live is not None and not managers:
        return stripped
    updater = Manager(writer.manager, "Update", writer.api_version, writer.subresource)
    held = managers.pop(updater, Owned())
    changed, removed = typed.compare(old, stripped, writer.types, ignored=writer.reset)
    _take(managers, updater, changed, removed, force=True)
    taken = changed - _STRIPPED
    # A writer keeps what it set before, and its time where it sets nothing new.
    if kept := (held.fields - removed) | taken:
        time = writer.now if taken else held.time
        managers[updater] = Owned(kept, writer.api_version, time)
    return _with_managers(stripped, managers)


def _take(
    managers: Managers, taker: Manager, changed: Fields, removed: Fields, *, force: bool
) -> None:
    """Give changed fields to the writer; raise ApplyConflict where others hold them."""
    others = [manager for manager in managers if manager != taker]
    conflicts = {manager: managers[manager].fields & changed for manager in others}
    if any(conflicts.values()) and not force:
        raise ApplyConflict((m, path) for m, held in conflicts.items() for path in held)
    for manager in others:
        entry = managers[manager]
        left = entry.fields - conflicts[manager] - removed
        if not left:
            del managers[manager]
        elif len(left) < len(entry.fields):
            managers[manager] = replace(entry, fields=left)


def keep_times(old: Object, new: Object) -> Object:
    """Return the old object where the new one differs in nothing but times of managedFields."""
    return old if jsonvalue.equal(_timeless(old), _timeless(new)) else new


def _timeless(obj: Object) -> Object:
    metadata = _metadata(obj)
    entries = [{**entry, "time": None} for entry in metadata.get("managedFields") or ()]
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def _before(live: Object | None, new: Object) -> tuple[Object, Managers]:
    """Return the object that a write finds, without managedFields, and its managers."""
    if live is None:
        return {key: new[key] for key in ("apiVersion", "kind") if key in new}, {}
    return _with_managers(live, {}), decode(_metadata(live).get("managedFields"))


def _metadata(obj: Object) -> Object:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _with_managers(obj: Object, managers: Managers) -> Object:
    """Return the object with these managers in place of its own."""
    metadata = {key: item for key, item in _metadata(obj).items() if key != "managedFields"}
    if managers:
        metadata["managedFields"] = encode(managers)
    return {**obj, "metadata": metadata} if metadata or "metadata" in obj else obj
