"""What a pod demands of its node beside resources: read from its spec, and compared with a node.

The rules are those of the Kubernetes scheduler for nodeSelector, node affinity, taints and
tolerations, ports of nodes, and required anti-affinity between pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, integer, mapping, objects, string, string_map, strings
from hyperjob_engine.model.members import (
    ANY_NODE,
    Apart,
    Expression,
    HostPorts,
    Labels,
    MemberNode,
    NodeWants,
    Taint,
    Toleration,
)
from hyperjob_engine.model.memo import Memo

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MOST_PORTS: Final = 64  # of a pod
_LONGEST_IP: Final = 64
REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
"""The effects of taints that keep pods away."""
_WANTS: Final[Memo[Object, NodeWants]] = Memo()


def wants_of(template: Object) -> NodeWants:
    """Return what a pod template demands of a node; it is computed once for each template."""
    return _WANTS.of(id(template), template, _wants_of)


def _wants_of(template: Object) -> NodeWants:
    spec = mapping(template.get("spec"))
    wants = parse_wants(spec, string_map(at(template, "metadata", "labels")))
    name = string(spec.get("nodeName"))
    if not name:
        return wants
    # No scheduler sees these pods: the kubelet of the node takes them whatever taint it has.
    on_node = Expression("metadata.name", "In", (name,), field=True)
    terms = tuple((*term, on_node) for term in wants.terms or ((),))
    return replace(wants, terms=terms, tolerations=(Toleration(operator="Exists"),))


def parse_wants(spec: Object, labels: Mapping[str, str]) -> NodeWants:
    """Parse what a pod with this spec and these labels demands of a node."""
    affinity = mapping(at(spec, "affinity", "nodeAffinity"))
    wants = NodeWants(
        selector=_pairs(string_map(spec.get("nodeSelector"))),
        terms=tuple(
            _node_term(term) for term in objects(at(affinity, _REQUIRED, "nodeSelectorTerms"))
        ),
        tolerations=tuple(
            Toleration(
                key=string(item.get("key")),
                operator=string(item.get("operator")) or "Equal",
                value=string(item.get("value")),
                effect=string(item.get("effect")),
            )
            for item in objects(spec.get("tolerations"))
        ),
        apart=parse_apart(spec, labels),
        labels=_pairs(labels),
        ports=parse_ports(spec),
    )
    return ANY_NODE if wants == ANY_NODE else wants


def parse_apart(spec: Object, labels: Mapping[str, str]) -> tuple[Apart, ...]:
    """Parse the required anti-affinity of a pod with this spec and these labels."""
    return tuple(
        Apart(
            topology_key=string(term.get("topologyKey")),
            expressions=(*_selector(mapping(term["labelSelector"])), *_keyed(term, labels)),
            namespaces=None
            if term.get("namespaceSelector") is not None
            else strings(term.get("namespaces")),
        )
        for term in objects(at(spec, "affinity", "podAntiAffinity", _REQUIRED))
        if term.get("labelSelector") is not None  # without one, no pod matches
    )


def parse_ports(spec: Object) -> HostPorts:
    """Parse the ports of the node that a pod takes; on the host's network these are all of it."""
    field = "containerPort" if spec.get("hostNetwork") is True else "hostPort"
    found = {
        (string(port.get("protocol")) or "TCP", number, _ip(string(port.get("hostIP"))))
        for container in objects(spec.get("containers"))
        for port in objects(container.get("ports"))
        if (number := integer(port.get("hostPort")) or integer(port.get(field)))
    }
    return tuple(sorted(found)[:_MOST_PORTS])


def _ip(address: str) -> str:
    return "" if address in ("0.0.0.0", "::") else address[:_LONGEST_IP]  # noqa: S104 - compared


def clash(some: HostPorts, others: HostPorts) -> bool:
    """Return whether two pods cannot be on one node since both take one of its ports."""
    return any(
        (protocol, number) == (other_protocol, other_number) and (not ip or not at or ip == at)
        for protocol, number, ip in some
        for other_protocol, other_number, at in others
    )


def matches(node: MemberNode, wants: NodeWants) -> bool:
    """Return whether a node has the labels and fields that a pod requires."""
    if not wants.selector and not wants.terms:
        return True
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in wants.selector):
        return False
    return not wants.terms or any(
        all(_holds(each, node.name if each.field else labels.get(each.key)) for each in term)
        for term in wants.terms
        if term  # an empty term matches no node
    )


def repels(node: MemberNode, wants: NodeWants) -> Taint | None:
    """Return the first taint of a node that keeps a pod away; None if it has none."""
    for taint in node.taints:
        if taint.effect in REPELLING and not _tolerated(taint, wants.tolerations):
            return taint
    return None


def parted_by(
    one: tuple[Labels, Iterable[Apart]], other: tuple[Labels, Iterable[Apart]]
) -> frozenset[str]:
    """Return the topology keys by which two pods of one namespace must be apart, either's term."""
    return frozenset(
        term.topology_key
        for (_, terms), (labels, _) in ((one, other), (other, one))
        for term in terms
        if selects(term.expressions, labels)
    )


def keys_of(terms: Iterable[Apart]) -> frozenset[str]:
    """Return the keys of the labels that anti-affinity terms look at."""
    return frozenset(each.key for term in terms for each in term.expressions)


def selects(expressions: Iterable[Expression], labels: Labels) -> bool:
    """Return whether a label selector selects an object with these labels."""
    known = dict(labels)
    return all(_holds(each, known.get(each.key)) for each in expressions)


def _holds(wanted: Expression, value: str | None) -> bool:
    """Return whether a value fulfils a requirement; None is an absent label.

    As in Kubernetes, NotIn holds for an absent label, and Gt and Lt compare integers only.
    """
    match wanted.operator:
        case "In":
            return value in wanted.values
        case "NotIn":
            return value not in wanted.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and len(wanted.values) == 1:
            try:
                own, limit = int(value), int(wanted.values[0])
            except ValueError:
                return False
            return own > limit if wanted.operator == "Gt" else own < limit
        case _:
            return False


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether a toleration matches a taint; an empty key or effect matches every one."""
    return any(
        each.effect in ("", taint.effect)
        and (
            (each.operator == "Exists" and each.key in ("", taint.key))
            or (each.operator == "Equal" and (each.key, each.value) == (taint.key, taint.value))
        )
        for each in tolerations
    )


def _node_term(term: Object) -> tuple[Expression, ...]:
    """Return the requirements of a NodeSelectorTerm, those of labels before those of fields."""
    return tuple(
        _expression(item, field=name == "matchFields")
        for name in ("matchExpressions", "matchFields")
        for item in objects(term.get(name))
    )


def _selector(selector: Object) -> tuple[Expression, ...]:
    """Return the requirements of a LabelSelector."""
    pairs = _pairs(string_map(selector.get("matchLabels")))
    return (
        *(Expression(key, "In", (value,)) for key, value in pairs),
        *(_expression(item) for item in objects(selector.get("matchExpressions"))),
    )


def _keyed(term: Object, labels: Mapping[str, str]) -> Iterable[Expression]:
    """Yield the requirements that `matchLabelKeys` and `mismatchLabelKeys` add to a selector."""
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in strings(term.get(field)):
            if key in labels:
                yield Expression(key, operator, (labels[key],))


def _expression(raw: Object, *, field: bool = False) -> Expression:
    return Expression(
        key=string(raw.get("key")),
        operator=string(raw.get("operator")),
        values=strings(raw.get("values")),
        field=field,
    )


def _pairs(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
