"""The changes of objects that follow from the opening of a gate, and change no plan.

The plan that opens a gate has the status of the sub-job behind it already. Its policy then changes,
and Karmada removes the suspension of the ResourceBinding: neither change alone makes a difference.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE, GATE_OPEN
from hyperjob_core.api.wire import at, mapping
from hyperjob_engine.model.observed import Binding


def opens_gate(old: Object | None, new: Object | None) -> bool:
    """Return whether the spec of a PropagationPolicy has only lost the gate that was opened."""
    if not _is_open(new) or at(old, "metadata", "annotations", GATE) == GATE_OPEN:
        return False
    before, after = mapping(at(old, "spec")), mapping(at(new, "spec"))
    names = (before.keys() | after.keys()) - {"suspension"}
    return all(before.get(name) == after.get(name) for name in names)


def follows_opening(
    old: Object | None, new: Object | None, *, policy: Object | None, binding: Binding
) -> bool:
    """Return whether the suspension of a ResourceBinding has only followed its policy's open gate.

    `binding` is the new ResourceBinding, parsed; the caller compares its other fields. While no
    member has received the vcjob, a plan reads nothing else of the suspension. After that, waits
    for the member begin with this change.
    """
    before, after = mapping(at(old, "spec", "suspension")), mapping(at(new, "spec", "suspension"))
    if before.get("dispatching") is not True or after.get("dispatching") is True:
        return False
    if before.get("scheduling") != after.get("scheduling") or not _is_open(policy):
        return False
    return not (binding.applied or binding.report or binding.workless_since)


def _is_open(policy: Object | None) -> bool:
    """Return whether the gate of a PropagationPolicy was opened, and nothing suspends it since."""
    return (
        at(policy, "metadata", "annotations", GATE) == GATE_OPEN
        and at(policy, "spec", "suspension", "dispatching") is not True
    )
