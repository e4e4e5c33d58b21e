"""Why no node takes a pod, in the words of Volcano's scheduler. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hyperjob_sandbox.member.gang import FreeNode, GangPod, Minimum, is_suitable, place


def fit_error(
    pods: Sequence[GangPod],
    nodes: Sequence[FreeNode],
    *,
    running: Mapping[str, int] | None = None,
) -> str:
    """Return why the first pod of a gang that stays without a node has none; empty without any.

    The pods before it have their places, as in the session of the scheduler that gave the gang up.
    """
    free = [replace(node, free=dict(node.free)) for node in nodes]
    placed = place(pods, free, Minimum(0, {}), running=running)
    left = next((pod for pod in pods if pod.key not in placed), None)
    if left is None:
        return ""
    reasons: Counter[str] = Counter()
    for node in free:
        reasons.update(_reasons(left, node))
    name = left.key.rpartition("/")[2]
    told = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items()))
    unavailable = f"0/{len(free)} nodes are unavailable"
    return f". Origin reason is {name}: {unavailable}{f': {told}' if told else ''}."


def _reasons(pod: GangPod, node: FreeNode) -> list[str]:
    if not is_suitable(pod.spec, node):
        return ["node(s) didn't match Pod's node affinity/selector or taints"]
    short = [name for name, amount in pod.request.items() if node.free.get(name, 0) < amount]
    return [f"Insufficient {name}" for name in sorted(short)[:1]]
