"""The gate on ResourceBindings: it suspends a gang's sub-jobs until the controller opens it.

Beside it the replicas that Volcano Global's quota reads: with Karmada's feature gate
MultiplePodTemplatesScheduling a binding has the requests of its vcjob in `components` alone.

The webhook recognises a sub-job's ResourceBinding by the affinity name that its PropagationPolicy
has. It patches single fields of `spec.suspension`, because Karmada, Volcano Global and users have
their own fields there. It never patches another ResourceBinding.
"""

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    AFFINITY_GATED,
    AFFINITY_HELD,
    GATE,
    GATE_HELD,
    LABEL_BINDING,
    LABEL_BINDING_VALUE,
    VCJOB_API_VERSION,
    VCJOB_KIND,
)
from hyperjob_core.api.wire import at
from hyperjob_rules.patch import JsonPatchOp, pointer


@dataclass(frozen=True, slots=True)
class _Field:
    """One field to set, with its JSON pointers."""

    root: str
    parent: str
    key: str
    value: str | bool
    path: str = dataclass_field(init=False)
    parent_path: str = dataclass_field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", pointer(self.root, self.parent, self.key))
        object.__setattr__(self, "parent_path", pointer(self.root, self.parent))


_LABEL: Final = _Field("metadata", "labels", LABEL_BINDING, LABEL_BINDING_VALUE)
_GATE: Final = _Field("metadata", "annotations", GATE, GATE_HELD)
_DISPATCHING: Final = _Field("spec", "suspension", "dispatching", value=True)
_SCHEDULING: Final = _Field("spec", "suspension", "scheduling", value=True)
_HELD: Final = (_LABEL, _GATE, _DISPATCHING)
_CLOSED: Final = (*_HELD, _SCHEDULING)


def stamp(binding: Object, *, operation: str, old: Object | None = None) -> list[JsonPatchOp]:
    """Return the JSON patch that keeps the gate of a ResourceBinding closed; empty if it is.

    At CREATE the gate is closed. Volcano Global's webhook keeps `scheduling` if it is already true;
    otherwise it replaces the whole suspension, and the API server calls this webhook again. At
    UPDATE a held gate stays closed: Volcano Global's release and the sync of Karmada's detector
    both remove `dispatching`, while they may change `scheduling`. In the mode builtin no other
    component releases a gang: its PropagationPolicy suspends dispatching, and the webhook closes
    the gate only if another webhook, such as Volcano Global's, has overwritten that. Volcano Global
    also gets the replicas of the one component that HyperJob's interpreter gives a vcjob.

    `old` is the ResourceBinding before an UPDATE by a user who may not open gates: if its gate was
    held, it stays held, even if the user changes annotation, resource or affinity name.
    """
    metadata = binding.get("metadata")
    # An API server always sends metadata; without it a patch could not be applied.
    if not isinstance(metadata, dict) or metadata.get("deletionTimestamp") is not None:
        return []
    if (
        operation == "UPDATE"
        and old is not None
        and _is_held(old)
        and isinstance(binding.get("spec"), dict)
    ):
        return _set(binding, _HELD)
    names = _affinity_names(binding)
    gated = AFFINITY_GATED in names
    if not gated and AFFINITY_HELD not in names:
        return []
    counted = _replicas(binding) if gated and operation in ("CREATE", "UPDATE") else []
    if operation == "CREATE":
        if not gated and at(binding, "spec", "suspension", "dispatching") is True:
            return []
        return _set(binding, _CLOSED if gated else _HELD) + counted
    if operation == "UPDATE" and at(binding, "metadata", "annotations", GATE) == GATE_HELD:
        return _set(binding, (_DISPATCHING,)) + counted
    return counted


def _replicas(binding: Object) -> list[JsonPatchOp]:
    """Return the patch that copies the one component of a binding without replicas.

    Karmada's detector removes the replicas at each sync. The controller gives the quota of an ended
    vcjob back by removing the request alone: a binding that has replicas is left as it is.
    """
    components = at(binding, "spec", "components")
    if not isinstance(components, list) or len(components) != 1:
        return []
    replicas = at(components[0], "replicas")
    if not isinstance(replicas, int) or replicas < 1 or at(binding, "spec", "replicas"):
        return []
    ops: list[JsonPatchOp] = [{"op": "add", "path": "/spec/replicas", "value": replicas}]
    request = at(components[0], "replicaRequirements", "resourceRequest")
    if isinstance(request, dict) and request:
        needed = {"resourceRequest": request}
        ops.append({"op": "add", "path": "/spec/replicaRequirements", "value": needed})
    return ops


def _affinity_names(binding: Object) -> list[object]:
    """Return the affinity names of a vcjob's ResourceBinding, if it has any."""
    affinities = at(binding, "spec", "placement", "clusterAffinities")
    if not isinstance(affinities, list):
        return []
    resource = at(binding, "spec", "resource")
    if not isinstance(resource, dict) or resource.get("kind") != VCJOB_KIND:
        return []
    if resource.get("apiVersion") != VCJOB_API_VERSION:
        return []
    return [each.get("affinityName") for each in affinities if isinstance(each, dict)]


def _is_held(binding: Object) -> bool:
    """Return whether the gate is held, by annotation and label: users may change affinity names."""
    if at(binding, "metadata", "annotations", GATE) != GATE_HELD:
        return False
    if at(binding, "metadata", "labels", LABEL_BINDING) == LABEL_BINDING_VALUE:
        return True
    names = _affinity_names(binding)
    return AFFINITY_GATED in names or AFFINITY_HELD in names


def _set(binding: Object, fields: tuple[_Field, ...]) -> list[JsonPatchOp]:
    """Return one `add` for each field that is not as wanted, and for each missing parent."""
    ops: list[JsonPatchOp] = []
    made: list[str] = []
    for field in fields:
        top = binding.get(field.root)
        parent = top.get(field.parent) if isinstance(top, dict) else None
        if isinstance(parent, dict):
            found = parent.get(field.key)
            if found is field.value or (found == field.value and isinstance(found, str)):
                continue
        elif field.parent_path not in made:
            made.append(field.parent_path)
            ops.append({"op": "add", "path": field.parent_path, "value": {}})
        ops.append({"op": "add", "path": field.path, "value": field.value})
    return ops
