"""Evaluate NetworkPolicies as a network plugin enforces them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class End:
    """One end of a connection: a pod, or an address outside when `namespace` is empty.

    `ports` are the pod's named ports, by protocol and name.
    """

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    address: str = "10.0.0.1"
    ports: Mapping[tuple[str, str], int] = field(default_factory=dict)


def admitted(
    policies: Iterable[Object], source: End, target: End, port: int, protocol: str = "TCP"
) -> bool:
    """Return whether the policies of both ends allow a connection.

    A pod that no policy selects allows all connections.
    """
    found = list(policies)
    return _lets(found, "Egress", source, target, target, port, protocol) and _lets(
        found, "Ingress", target, source, target, port, protocol
    )


def _lets(
    policies: list[Object],
    direction: str,
    selected: End,
    peer: End,
    target: End,
    port: int,
    protocol: str,
) -> bool:
    rules, isolated = [], False
    for policy in policies:
        spec = policy["spec"]
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
        if (
            direction in types
            and selected.namespace == policy["metadata"]["namespace"]
            and _selects(spec["podSelector"], selected.labels)
        ):
            isolated = True
            rules += [(policy, rule) for rule in spec.get(direction.lower()) or []]
    peers = {"Ingress": "from", "Egress": "to"}[direction]
    return not isolated or any(
        _has_port(rule.get("ports"), target, port, protocol)
        and _has_peer(rule.get(peers), peer, policy["metadata"]["namespace"])
        for policy, rule in rules
    )


def _has_port(ports: list[Object] | None, target: End, port: int, protocol: str) -> bool:
    if not ports:
        return True
    for each in ports:
        if each.get("protocol", "TCP") != protocol:
            continue
        wanted = each.get("port")
        if isinstance(wanted, str):
            wanted = target.ports.get((protocol, wanted), -1)
        if wanted is None or wanted <= port <= each.get("endPort", wanted):
            return True
    return False


def _has_peer(peers: list[Object] | None, peer: End, namespace: str) -> bool:
    if not peers:
        return True
    return any(_is_peer(each, peer, namespace) for each in peers)


def _is_peer(wanted: Object, peer: End, namespace: str) -> bool:
    if block := wanted.get("ipBlock"):
        address = ip_address(peer.address)
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(cidr) for cidr in block.get("except", ())
        )
    if not peer.namespace:
        return False
    if (selector := wanted.get("namespaceSelector")) is None:
        if peer.namespace != namespace:
            return False
    elif not _selects(selector, peer.namespace_labels):
        return False
    return _selects(wanted.get("podSelector") or {}, peer.labels)


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    return all(_meets(each, labels) for each in selector.get("matchExpressions", ()))


def _meets(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None
