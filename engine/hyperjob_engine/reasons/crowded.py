"""Why the nodes of a cluster do not hold pods: the numbers of nodes, and the sentence."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from hyperjob_engine.resources import amount_only, amount_text

_SYMBOLS: Final = {"In": "=", "NotIn": "!=", "Gt": ">", "Lt": "<"}

LabelDemand: TypeAlias = tuple[str, str, tuple[str, ...]]
"""A requirement of a label of a node: its key, operator and values."""


@dataclass(frozen=True, slots=True)
class NodeSum:
    """So many nodes, `some` of which have a resource free: all together `free`, one `largest`."""

    nodes: int = 0
    some: int = 0
    free: int = 0
    largest: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShortage:
    """The nodes of a cluster hold `most` of `wanted` pods with `amount` of a resource each.

    `ready` are the nodes that take pods, `matching` those of them with the labels that the pods
    demand by `selector` and by one of `terms`. `tainted` of these have a taint, such as `taint`
    with `effect`, that the pods do not tolerate. `short` is another
    resource, which the nodes with enough of the first lack. `tier` or `tier_name` is that of
    the HyperNode that must hold the pods together. `apart`: the pods must not share a node with
    some others.
    """

    resource: str
    amount: int
    wanted: int
    most: int
    ready: NodeSum = NodeSum()
    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[tuple[LabelDemand, ...], ...] = ()
    matching: NodeSum = NodeSum()
    taint: str = ""
    effect: str = ""
    tainted: int = 0
    short: str = ""
    tier: int = 0
    tier_name: str = ""
    apart: bool = False
    cordoned: int = 0
    not_ready: int = 0


def node_shortage_text(short: NodeShortage) -> str:
    """Return what the nodes of a cluster have free, and why that does not hold the pods."""
    free = amount_text(short.resource, short.ready.free)
    each = amount_only(short.resource, short.amount)
    begin = f"has {free} free on {_nodes_text(short.ready.some)}"
    return "; ".join([f"{begin}, {_cause(short, each)}", *_notes(short)])


def _cause(short: NodeShortage, each: str) -> str:
    """Return why the pods do not fit; `each` is the amount that one pod demands."""
    pods = "1 pod" if short.wanted == 1 else f"{short.wanted} pods"
    if short.tier or short.tier_name:
        tier = short.tier_name or short.tier
        return f"but no HyperNode of tier {tier} with room for {pods} with {each} each"
    usable = short.matching if _demand_text(short) else short.ready
    if usable.largest < short.amount:
        largest = amount_only(short.resource, short.ready.largest)
        if short.ready.largest < short.amount:
            return f"but no node with {each} free (largest {largest})"
        return f"but no node that matches with {each} free"
    if short.most:
        return f"which hold {short.most} of {pods} with {each} each"
    return f"but no room for {pods} with {each} each"


def _notes(short: NodeShortage) -> Iterable[str]:
    """Yield what else keeps pods from nodes: labels, taints, another resource, left out nodes."""
    demand = _demand_text(short)
    if demand:
        amount = amount_only(short.resource, short.matching.free)
        verb = "matches" if short.matching.nodes == 1 else "match"
        yield f"{_nodes_text(short.matching.nodes)} {verb} {demand}, {amount} free"
    if short.tainted:
        have = "has" if short.tainted == 1 else "have"
        taint = f"{short.taint}:{short.effect}"
        yield f"{_nodes_text(short.tainted)} {have} a taint that it does not tolerate ({taint})"
    if short.short:
        yield f"nodes with enough {short.resource} lack {short.short}"
    if short.apart:
        yield "its pod anti-affinity keeps pods from sharing nodes"
    if short.cordoned or short.not_ready:
        states = ((short.cordoned, "cordoned"), (short.not_ready, "not ready"))
        texts = (f"{number} {state}" for number, state in states if number)
        yield f"nodes left out: {', '.join(texts)}"


def _nodes_text(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _demand_text(short: NodeShortage) -> str:
    """Return what pods require of the labels of a node: `pool=a and gpu in (H100, H200)`."""
    parts = [f"{key}={value}" for key, value in short.selector]
    terms = [" and ".join(map(_requirement_text, term)) or "nothing" for term in short.terms]
    return " and ".join([*parts, *([" or ".join(terms)] if terms else [])])


def _requirement_text(wanted: LabelDemand) -> str:
    """Return a requirement as users write it in a selector: `gpu in (H100, H200)`."""
    key, operator, values = wanted
    text = ", ".join(values)
    match operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"no {key}"
        case "In" | "NotIn" if len(values) != 1:
            return f"{key} {'in' if operator == 'In' else 'not in'} ({text})"
        case _:
            return f"{key}{_SYMBOLS.get(operator, operator)}{text}"
