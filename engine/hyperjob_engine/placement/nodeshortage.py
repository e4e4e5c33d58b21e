"""Why the nodes of a cluster do not hold pods, with the numbers of nodes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hyperjob_core.text import listed, nearest
from hyperjob_engine.model.members import Expression, MemberNode, NodeState, NodeWants
from hyperjob_engine.model.request import Items, Kind, kinds_of
from hyperjob_engine.model.wants import matches, repels
from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.placement.packing import Unfit
from hyperjob_engine.resources import (
    PODS,
    Resources,
    amount_only,
    amount_text,
    fits,
    measure_of,
)

_OF_NODES: Final = "node.kubernetes.io/"
_SYMBOLS: Final = {"In": "=", "NotIn": "!=", "Gt": ">", "Lt": "<"}


class _Sum(NamedTuple):
    """Of some nodes, `some` have a resource free: all together `free`, one `largest`."""

    some: int
    free: int
    largest: int


def node_shortage(ground: Ground, found: Unfit) -> str:
    """Return what the nodes of a cluster have free, and why that does not hold the pods.

    Each sum is about nodes of the one before: all nodes, the ready ones, those of them with the
    labels that the pods require, and those without a taint that keeps the pods away.
    """
    request, wants = dict(found.kind.request), found.kind.wants
    resource = _measure(request)
    ready = [node for node in ground.nodes if node.state is NodeState.READY]
    matching = [node for node in ready if matches(node, wants)]
    usable = [node for node in matching if repels(node, wants) is None]
    free, matched = _sum(ready, resource), _sum(matching, resource)
    demand = _demand(wants)
    has = f"has {amount_text(resource, free.free)} free on {_nodes(free.some)}"
    short = _short(usable, request, resource)
    cause = _cause(found, resource, free, matched, short)
    texts = [f"{has}, {cause}" if free.some else f"has no {resource} free"]
    if demand:
        verb = "matches" if len(matching) == 1 else "match"
        amount = amount_only(resource, matched.free)
        texts.append(f"{_nodes(len(matching))} {verb} {demand}, {amount} free")
    taints = Counter(taint for node in matching if (taint := repels(node, wants)) is not None)
    if taints:
        have, first = "has" if taints.total() == 1 else "have", next(iter(taints))
        not_tolerated = f"a taint that it does not tolerate ({first.key}:{first.effect})"
        texts.append(f"{_nodes(taints.total())} {have} {not_tolerated}")
    if wants.apart:
        texts.append("its pod anti-affinity keeps pods from sharing nodes")
    if wants.ports:
        texts.append("each node has one pod with its host ports")
    states = Counter(node.state for node in ground.nodes)
    out = ((states[NodeState.CORDONED], "cordoned"), (states[NodeState.NOT_READY], "not ready"))
    if left_out := ", ".join(f"{number} {state}" for number, state in out if number):
        texts.append(f"nodes left out: {left_out}")
    return "; ".join(texts)


def _measure(request: Resources) -> str:
    """Return what a pod is measured by: what it has of devices and CPUs, else what it asks for."""
    usual = measure_of(request)
    asked = sorted(name for name, amount in request.items() if amount > 0 and name != PODS)
    return usual if usual in asked or not asked else asked[0]


def mismatch(ground: Ground | None, pods: Items) -> str:
    """Return why the nodes keep pods away whatever is free on them; empty if they may not."""
    if ground is None:
        return ""  # the nodes are not known
    for kind in kinds_of(pods):
        key = ("mismatch", kind)
        if key not in ground.answers:
            ground.answers[key] = _mismatch(ground.nodes, kind)
        if text := str(ground.answers[key]):
            return text
    return ""


def _mismatch(nodes: Sequence[MemberNode], kind: Kind) -> str:
    """Return the label or taint that keeps pods from all nodes, or from all large enough ones."""
    request = dict(kind.request)
    resource = _measure(request)
    amount = amount_text(resource, request.get(resource, 0))
    large = [node for node in nodes if fits(request, node.allocatable)]
    return _kept_away(nodes, kind.wants, "") or _kept_away(large, kind.wants, f" with {amount}")


def _kept_away(nodes: Sequence[MemberNode], wants: NodeWants, size: str) -> str:
    """Return what keeps pods from all of these nodes; empty if nothing does.

    The taints by which Kubernetes marks a node in trouble pass: they are no such cause.
    """
    demand = _demand(wants)
    matching = [node for node in nodes if matches(node, wants)]
    if nodes and not matching:
        return f"no node{size} matches {demand}"
    taints = [repels(node, wants) for node in matching]
    kept = [each for each in taints if each is not None and not each.key.startswith(_OF_NODES)]
    if matching and len(kept) == len(matching):
        that = f" that matches {demand}" if demand else ""
        taint = f"a taint that its pods do not tolerate ({kept[0].key}:{kept[0].effect})"
        return f"every node{size}{that} has {taint}"
    return ""


def label_hint(grounds: Iterable[Ground], pods: Items) -> str:
    """Return what may be meant by a label of a nodeSelector that no node has; empty if unknown."""
    known: dict[str, set[str]] = {}
    for ground in grounds:
        for node in ground.nodes:
            for key, value in node.labels:
                known.setdefault(key, set()).add(value)
    wanted = (pair for kind in kinds_of(pods) for pair in kind.wants.selector)
    for key, value in dict.fromkeys(wanted):
        values = sorted(known.get(key, ()))
        if key in known and value not in values:
            near = nearest(value, values)
            return (
                f"; did you mean {key}={near}?" if near else f"; nodes have {key}={listed(values)}"
            )
        if key not in known and (near := nearest(key, sorted(known))):
            return f"; did you mean the label {near}?"
    return ""


def _cause(found: Unfit, resource: str, free: _Sum, usable: _Sum, short: str) -> str:
    """Return why pods do not fit on nodes with so much free, of which they may use `usable`.

    `short` is what the nodes with enough of the resource lack.
    """
    amount = dict(found.kind.request).get(resource, 0)
    each = amount_only(resource, amount)
    pods = f"1 pod with {each}" if found.wanted == 1 else f"{found.wanted} pods with {each} each"
    block = found.block
    if block is not None and (block.tier.number or block.tier.name):
        tier = block.tier.name or block.tier.number
        return f"but no HyperNode of tier {tier} with room for {pods}"
    if usable.largest < amount:
        if free.largest >= amount:
            return f"but no node that matches with {each} free"
        return f"but no node with {each} free (largest {amount_only(resource, free.largest)})"
    if short:
        return f"but no node with {each} free also has {short}"
    if found.most:
        return f"which hold {found.most} of {pods}"
    return f"but no room for {pods}"


def _sum(nodes: Sequence[MemberNode], resource: str) -> _Sum:
    amounts = [free for node in nodes if (free := node.free.get(resource, 0)) > 0]
    return _Sum(len(amounts), sum(amounts), max(amounts, default=0))


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _demand(wants: NodeWants) -> str:
    """Return what pods require of the labels of a node: `pool=a and gpu in (H100, H200)`."""
    parts = [f"{key}={value}" for key, value in wants.selector]
    terms = [" and ".join(map(_requirement, term)) or "nothing" for term in wants.terms]
    return " and ".join([*parts, *([" or ".join(terms)] if terms else [])])


def _requirement(wanted: Expression) -> str:
    """Return a requirement as users write it in a selector: `gpu in (H100, H200)`."""
    text = ", ".join(wanted.values)
    match wanted.operator:
        case "Exists":
            return wanted.key
        case "DoesNotExist":
            return f"no {wanted.key}"
        case "In" | "NotIn" if len(wanted.values) != 1:
            verb = "in" if wanted.operator == "In" else "not in"
            return f"{wanted.key} {verb} ({text})"
        case operator:
            return f"{wanted.key}{_SYMBOLS.get(operator, operator)}{text}"


def _short(nodes: Sequence[MemberNode], request: dict[str, int], resource: str) -> str:
    """Return how much of which other resource the nodes with enough of the first lack; or empty.

    It is the first that all of them lack; without such a resource all that one of them lacks.
    """
    enough = [node for node in nodes if node.free.get(resource, 0) >= request.get(resource, 0)]
    if not enough or any(fits(request, node.free) for node in enough):
        return ""
    missing = Counter(
        name
        for node in enough
        for name, amount in request.items()
        if amount > node.free.get(name, 0)
    )
    names = sorted(missing, key=lambda name: (-missing[name], name))
    texts = [
        "room for another pod" if name == PODS else amount_text(name, request[name])
        for name in names
    ]
    if missing[names[0]] < len(enough):
        return " and ".join(texts)
    largest = max(node.free.get(names[0], 0) for node in enough)
    return texts[0] + ("" if names[0] == PODS else f" (largest {amount_only(names[0], largest)})")
