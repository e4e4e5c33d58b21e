"""Server-side apply, and the field ownership that every other write leaves behind.

Pure: `now` is given, inputs are never changed, the result's managedFields are complete. Defaults,
validation and admission come after, in the caller.
"""

from collections.abc import Iterable
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.ownership import typed, typedcheck
from hyperjob_sandbox.apiserver.ownership.fields import EMPTY, FieldPath, FieldSet, print_path
from hyperjob_sandbox.apiserver.ownership.managedfields import Managed, Manager
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo

__all__ = ["ApplyConflict", "TypeInfo", "apply_patch", "keep_times", "track_update"]

_STRIPPED: Final = FieldSet.of(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
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
        ),
    ]
)

Conflict = tuple[Manager, FieldPath]


class ApplyConflict(errors.ApiError):
    """Fields of an apply that other managers hold (409)."""

    def __init__(self, conflicts: Iterable[Conflict]) -> None:
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
    if found := typedcheck.problems(applied, types):
        raise errors.plain_internal(
            f"failed to create typed patch object ({_identity(applied)}): "
            f"{typedcheck.summary(found)}"
        )
    old = _without_managed_fields(live) if live is not None else _empty(applied)
    managed = _managed_before_apply(live, old, types=types, now=now, subresource=subresource)
    applier = Manager.applier(manager, subresource)
    ignored = FieldSet.of((f"f:{name}",) for name in reset)
    merged, owners = _apply(old, applied, applier, managed, types, ignored, force=force)
    changed = not jsonvalue.equal(merged, old)
    if changed:
        owners.times[applier] = now
    return _with_managed_fields(merged, owners)


def _apply(
    old: Object,
    applied: Object,
    applier: Manager,
    managed: Managed,
    types: TypeInfo,
    ignored: FieldSet,
    *,
    force: bool,
) -> tuple[Object, Managed]:
    owners = Managed(
        dict(managed.fields), dict(managed.versions), dict(managed.times), managed.written
    )
    last = owners.fields.get(applier, EMPTY)
    mine = typed.to_field_set(applied, types).recursive_difference(ignored)
    owners.fields[applier] = mine
    owners.versions[applier] = applied.get("apiVersion", "")
    merged: Object = typed.merge(old, applied, types)
    if last:
        merged = _let_go(merged, last, owners, types)
    change = typed.compare(old, merged, types).without(ignored)
    _take(owners, applier, change, force=force)
    owners.put(applier, mine.difference(_STRIPPED), owners.versions[applier])
    return merged, owners


def _let_go(merged: Object, last: FieldSet, owners: Managed, types: TypeInfo) -> Object:
    """Remove what the applier applied last time, does not now, and no other manager owns."""

    def named(fields: FieldSet) -> FieldSet:
        return typed.with_named_fields(fields, types)

    def fields_of(value: Json) -> FieldSet:
        return named(typed.to_field_set(value, types))

    last_named = named(last)
    everything = fields_of(merged)
    pruned = typed.remove(merged, last_named, types)
    owned = EMPTY
    for fields in owners.fields.values():
        owned = owned.union(fields)
    lost = everything.difference(fields_of(pruned).union(named(owned)))
    pruned = typed.remove(merged, lost, types)
    # What was never the applier's own stays, even where its parent goes.
    gone = everything.difference(fields_of(pruned)).intersection(last_named).difference(owned)
    result: Object = typed.remove(merged, gone, types)
    return result


def _take(owners: Managed, taker: Manager, change: typed.Comparison, *, force: bool) -> None:
    """Give changed fields to the writer; raise ApplyConflict where others hold them."""
    changed = change.changed
    conflicts = {
        manager: held
        for manager, fields in owners.fields.items()
        if manager != taker and (held := fields.intersection(changed))
    }
    if conflicts and not force:
        raise ApplyConflict((m, path) for m, held in conflicts.items() for path in held)
    for manager in list(owners.fields):
        if manager == taker:
            continue
        left = owners.fields[manager]
        if manager in conflicts:
            left = left.difference(conflicts[manager])
        owners.put(manager, left.difference(change.removed), owners.versions[manager])


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
    before = (live or {}).get("metadata", {}).get("managedFields")
    managed: Managed | None = None
    if not subresource and given is not None:
        managed = Managed() if given in ([], [{}]) else Managed.decode(given)
    if managed is None or (given not in ([], [{}]) and not managed.fields):
        managed = Managed.decode(before) or Managed()
    stripped = _without_managed_fields(new)
    if live is not None and not managed.fields:
        return stripped
    old = _without_managed_fields(live) if live is not None else _empty(new)
    updater = Manager.updater(manager, api_version, subresource)
    ignored = FieldSet.of((f"f:{name}",) for name in reset)
    _update(managed, updater, old, stripped, types, now, ignored=ignored)
    return _with_managed_fields(stripped, managed)


def _update(
    managed: Managed,
    updater: Manager,
    old: Object,
    new: Object,
    types: TypeInfo,
    now: str,
    *,
    ignored: FieldSet,
) -> None:
    change = typed.compare(old, new, types).without(ignored)
    held = managed.fields.pop(updater, EMPTY)
    _take(managed, updater, change, force=True)
    taken = change.changed.difference(_STRIPPED)
    # A writer keeps what it set before, and its time where it sets nothing new.
    managed.put(updater, held.difference(change.removed).union(taken), updater.api_version)
    if taken:
        managed.times[updater] = now


def _managed_before_apply(
    live: Object | None, old: Object, *, types: TypeInfo, now: str, subresource: str
) -> Managed:
    """Return who owned what; an object without owners was written before the first apply."""
    if live is None:
        return Managed()
    managed = Managed.decode((live.get("metadata") or {}).get("managedFields"))
    if managed is None:
        raise errors.plain_internal("failed to decode managed fields")
    if not managed.fields:
        version = live.get("apiVersion", "")
        updater = Manager.updater("before-first-apply", version, subresource)
        _update(managed, updater, _empty(live), old, types, now, ignored=EMPTY)
    return managed


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


def _with_managed_fields(obj: Object, managed: Managed) -> Object:
    metadata = {
        key: item for key, item in (obj.get("metadata") or {}).items() if key != "managedFields"
    }
    if managed.fields:
        metadata["managedFields"] = managed.encode()
    return {**obj, "metadata": metadata} if metadata or "metadata" in obj else obj
