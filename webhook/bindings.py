"""Stamping of ResourceBindings: the gate that keeps a gang's children from being dispatched early.

A binding of ours is recognised from the binding alone, by the affinity name that its policy
carries. Stamping touches single fields of `spec.suspension`, never the object, because Karmada,
Volcano Global and users keep their own fields in it. Never touches a binding that is not ours.
"""

from typing import Final

from hyperjob.api.meta import Object
from hyperjob.api.names import (
    AFFINITY_GATED,
    GATE,
    GATE_HELD,
    LABEL_BINDING,
    LABEL_BINDING_VALUE,
)
from webhook.patch import JsonPatchOp, pointer

_LABEL: Final = ("metadata", "labels", LABEL_BINDING)
_GATE: Final = ("metadata", "annotations", GATE)
_DISPATCHING: Final = ("spec", "suspension", "dispatching")
_SCHEDULING: Final = ("spec", "suspension", "scheduling")


def stamp(binding: Object, *, operation: str) -> list[JsonPatchOp]:
    """Return the patch that a binding needs so that its gate holds; empty for all others.

    At CREATE the gate is closed: Volcano Global's webhook leaves `scheduling` alone when it is
    already true, and replaces the whole suspension when it is not, after which the API server
    calls here again. At UPDATE a held gate stays closed: Volcano Global's release and the
    detector's sync both wipe `dispatching`, while `scheduling` is theirs to change.
    """
    if not _is_gated(binding) or _is_being_deleted(binding):
        return []
    if operation == "CREATE":
        return _set(
            binding,
            (
                (_LABEL, LABEL_BINDING_VALUE),
                (_GATE, GATE_HELD),
                (_DISPATCHING, True),
                (_SCHEDULING, True),
            ),
        )
    if operation == "UPDATE" and _find(binding, _GATE) == GATE_HELD:
        return _set(binding, ((_DISPATCHING, True),))
    return []


def _is_gated(binding: Object) -> bool:
    affinities = _find(binding, ("spec", "placement", "clusterAffinities"))
    return isinstance(affinities, list) and any(
        isinstance(affinity, dict) and affinity.get("affinityName") == AFFINITY_GATED
        for affinity in affinities
    )


def _is_being_deleted(binding: Object) -> bool:
    return _find(binding, ("metadata", "deletionTimestamp")) is not None


def _find(obj: Object, path: tuple[str, ...]) -> object:
    value: object = obj
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _set(
    binding: Object, fields: tuple[tuple[tuple[str, str, str], str | bool], ...]
) -> list[JsonPatchOp]:
    """Return one `add` for each field that is not as wanted, and for each missing parent."""
    ops: list[JsonPatchOp] = []
    made: set[tuple[str, str]] = set()
    for (root, parent, key), value in fields:
        top = binding.get(root)
        holder = top.get(parent) if isinstance(top, dict) else None
        if isinstance(holder, dict):
            if holder.get(key) is value or (isinstance(value, str) and holder.get(key) == value):
                continue
        elif (root, parent) not in made:
            made.add((root, parent))
            ops.append({"op": "add", "path": pointer(root, parent), "value": {}})
        ops.append({"op": "add", "path": pointer(root, parent, key), "value": value})
    return ops
