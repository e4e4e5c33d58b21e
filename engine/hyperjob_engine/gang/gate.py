"""The gate of a gang: admitted sub-jobs are suspended until `minAvailable` of them are admitted.

The PropagationPolicy is created with the suspension, which Karmada copies to the ResourceBinding.
Volcano Global overwrites that copy: the webhook then holds the gate in the ResourceBinding too, and
marks it. The controller opens what holds a gate, once. A suspension of another author stays.

The changes of objects that follow from the opening of a gate, and change no plan.

The plan that opens a gate has the status of the sub-job behind it already. Its policy then changes,
and Karmada removes the suspension of the ResourceBinding: neither change alone makes a difference.
"""

from collections.abc import Collection, Sequence

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE, GATE_HELD, GATE_OPEN
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import at, mapping
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import Binding, Ownership, QueueAdmission
from hyperjob_engine.model.planned import OpenGate


def is_held(child: Child) -> bool:
    """Return whether a gate of HyperJob holds the sub-job: its ResourceBinding's, or its policy's.

    A suspension after the gate was opened is another author's.
    """
    if child.binding is None or child.binding.gate == GATE_OPEN:
        return False
    return child.binding.gate == GATE_HELD or _policy_holds(child)


def is_through(child: Child) -> bool:
    """Return whether no gate and no suspension holds a sub-job any more."""
    if child.is_terminal:
        return True
    if child.binding is None or is_held(child):
        return False
    return not child.binding.scheduling_suspended


def is_opened(child: Child) -> bool:
    """Return whether the policy's gate was opened, and no user has suspended the policy since."""
    return (
        child.policy is not None and child.policy.gate == GATE_OPEN and not child.policy.suspended
    )


def is_ungated(child: Child) -> bool:
    """Return whether the policy was created without a gate, and Karmada may apply the vcjob."""
    policy, binding = child.policy, child.binding
    if policy is None or binding is None or policy.ownership is Ownership.FOREIGN:
        return False
    return not (policy.gate or is_held(child) or binding.suspended) and bool(binding.cluster)


def is_released(child: Child) -> bool:
    """Return whether the queue has released a held sub-job: it counts against the quota."""
    return is_held(child) and child.binding is not None and not child.binding.scheduling_suspended


def is_cleared(child: Child, admission: QueueAdmission) -> bool:
    """Return whether the queue released a held sub-job and Karmada placed it on its cluster."""
    binding = child.binding
    if binding is None or not is_held(child):
        return False
    if admission is QueueAdmission.NONE:
        return True  # without a queue admission no component releases it
    if admission is QueueAdmission.BUILTIN and binding.scheduling_suspended:
        return True  # suspended while Volcano Global was in use; now the engine admits
    pin = child.policy.clusters if child.policy is not None else ()
    return is_released(child) and bool(binding.cluster) and binding.cluster in pin


def is_undispatched(child: Child) -> bool:
    """Return whether a gate holds this HyperJob's vcjob, and no member has received it."""
    if not _is_ours(child):
        return False
    if child.phase is not JobPhase.UNKNOWN:
        return False
    if child.binding is None:
        return child.policy is None or _policy_holds(child)
    return is_held(child) and not child.binding.applied


def openings(
    children: Sequence[Child],
    *,
    minimum: int,
    admission: QueueAdmission,
    ready: Collection[str],
) -> list[OpenGate]:
    """Return the gates to open now: those of all admitted and `ready` sub-jobs.

    It is empty while fewer than `minimum` sub-jobs can run. A sub-job whose ResourceBinding has no
    gate is in its member already and does not delay the others. A held sub-job that a member has
    received all the same has no need of room: its gate opens with the others.
    """
    able = {
        child.name
        for child in children
        if _is_ours(child)
        and (
            (is_held(child) and not is_undispatched(child))
            or (child.name in ready and is_cleared(child, admission))
        )
    }
    through = sum(is_through(child) for child in children)
    if len(able) + through < minimum:
        return []
    return [
        _opening(child, child.binding, admission)
        for child in children
        if child.name in able and child.binding is not None
    ]


def _opening(child: Child, binding: Binding, admission: QueueAdmission) -> OpenGate:
    """Return the opening of what holds a sub-job: the gate of its policy, of its binding, or both.

    The binding alone has to be written for its own gate, and to release its scheduling where no
    Volcano Global does that.
    """
    policy_uid = child.policy.uid if child.policy is not None and _policy_holds(child) else None
    release = admission is not QueueAdmission.VOLCANO_GLOBAL and binding.scheduling_suspended
    alone = policy_uid is not None and binding.gate != GATE_HELD and not release
    return OpenGate(
        name=child.name,
        binding=binding.name,
        binding_uid=None if alone else binding.uid,
        policy_uid=policy_uid,
        release_scheduling=release,
    )


def _is_ours(child: Child) -> bool:
    """Return whether this HyperJob controls the vcjob; an orphan must be adopted first."""
    return child.exists and child.job is not None and child.job.ownership is Ownership.OURS


def _policy_holds(child: Child) -> bool:
    """Return whether the policy holds the gate, or its deletion has left the suspension behind."""
    policy, binding = child.policy, child.binding
    if policy is None:
        waits = child.phase is JobPhase.UNKNOWN
        return waits and binding is not None and binding.dispatching_suspended
    if policy.gate == GATE_OPEN or policy.ownership is Ownership.FOREIGN:
        return False
    return policy.suspended


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
