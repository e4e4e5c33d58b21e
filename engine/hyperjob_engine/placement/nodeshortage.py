"""Why the nodes of a cluster do not hold pods, in numbers of nodes."""

from collections import Counter
from collections.abc import Sequence

from hyperjob_engine.model.members import MemberNode, NodeState
from hyperjob_engine.model.nodes import ANY_TIER
from hyperjob_engine.model.wants import matches, repels
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.placement.items import Unfit
from hyperjob_engine.reasons.crowded import NodeShortage, NodeSum
from hyperjob_engine.resources import fits, measure_of


def node_shortage(ground: Ground, found: Unfit) -> NodeShortage:
    """Return what the nodes of a cluster have, and lack for the pods that do not fit.

    Each sum is about nodes of the one before: all nodes, the ready ones, those of them with the
    labels that the pods require, and those without a taint that keeps the pods away.
    """
    request, wants = dict(found.kind.request), found.kind.wants
    resource = measure_of(request)
    states = Counter(node.state for node in ground.nodes)
    ready = [node for node in ground.nodes if node.state is NodeState.READY]
    matching = [node for node in ready if matches(node, wants)]
    taints = Counter(taint for node in matching if (taint := repels(node, wants)) is not None)
    usable = [node for node in matching if repels(node, wants) is None]
    block = found.block if found.block and found.block.tier < ANY_TIER else None
    return NodeShortage(
        resource=resource,
        amount=request.get(resource, 0),
        wanted=found.wanted,
        most=found.most,
        ready=_sum(ready, resource),
        selector=wants.selector,
        terms=tuple(
            tuple((each.key, each.operator, each.values) for each in term) for term in wants.terms
        ),
        matching=_sum(matching, resource),
        taint=next((taint.key for taint in taints), ""),
        effect=next((taint.effect for taint in taints), ""),
        tainted=taints.total(),
        short=_short(usable, request, resource),
        tier=block.tier if block is not None else 0,
        tier_name=block.tier_name if block is not None else "",
        apart=bool(wants.apart),
        cordoned=states[NodeState.CORDONED],
        not_ready=states[NodeState.NOT_READY],
    )


def _sum(nodes: Sequence[MemberNode], resource: str) -> NodeSum:
    amounts = [free for node in nodes if (free := node.free.get(resource, 0)) > 0]
    return NodeSum(len(nodes), len(amounts), sum(amounts), max(amounts, default=0))


def _short(nodes: Sequence[MemberNode], request: dict[str, int], resource: str) -> str:
    """Return the other resource that keeps pods from nodes with enough of the first; or empty."""
    enough = [node for node in nodes if node.free.get(resource, 0) >= request.get(resource, 0)]
    if not enough or any(fits(request, node.free) for node in enough):
        return ""
    missing = Counter(
        name
        for node in enough
        for name, amount in request.items()
        if amount > node.free.get(name, 0)
    )
    return min(missing, key=lambda name: (-missing[name], name), default="")
