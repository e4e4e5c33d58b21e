"""The gate of a gang: sub-jobs admitted by the queue are held until enough of them are.

Opens only; closing is the webhook's work at creation. A suspension that is not ours is left alone.
"""

from collections.abc import Sequence

from controller.model.child import Child
from controller.model.observed import QueueAdmission
from controller.model.planned import OpenGate
from hyperjob.api.names import GATE_HELD, GATE_OPEN


def is_held(child: Child) -> bool:
    """Tell whether a sub-job stands behind a gate of ours.

    A policy that still suspends counts too: the webhook may have been away at creation. Once the
    gate was opened, a suspension is somebody else's.
    """
    if child.binding is None or child.binding.gate == GATE_OPEN:
        return False
    return child.binding.gate == GATE_HELD or _policy_holds(child)


def is_through(child: Child) -> bool:
    """Tell whether nothing holds a sub-job back any more."""
    if child.is_terminal:
        return True
    if child.binding is None or is_held(child):
        return False
    return not child.binding.scheduling_suspended


def is_admitted(child: Child, admission: QueueAdmission) -> bool:
    """Tell whether the queue released a held sub-job and Karmada placed it where we pinned it."""
    binding = child.binding
    if binding is None or not is_held(child):
        return False
    if admission is QueueAdmission.NONE:
        return True  # nobody else will release it
    pin = child.policy.clusters if child.policy is not None else ()
    return not binding.scheduling_suspended and bool(binding.cluster) and binding.cluster in pin


def openings(
    children: Sequence[Child], *, minimum: int, admission: QueueAdmission
) -> list[OpenGate]:
    """Return the gates to open now: all that are admitted, once `minimum` are or were."""
    admitted = [child for child in children if is_admitted(child, admission)]
    through = sum(is_through(child) for child in children)
    if len(admitted) + through < minimum:
        return []
    return [
        OpenGate(
            name=child.name,
            binding=child.binding.name,
            policy_suspended=_policy_holds(child),
            release_scheduling=admission is QueueAdmission.NONE
            and child.binding.scheduling_suspended,
        )
        for child in admitted
        if child.binding is not None
    ]


def _policy_holds(child: Child) -> bool:
    return child.policy is not None and child.policy.suspended
