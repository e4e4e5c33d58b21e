"""What a pod demands of its node beside resources, read from its spec."""

from collections.abc import Iterable, Mapping
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, mapping, objects, string, string_map, strings
from hyperjob_engine.model.members import (
    ANY_NODE,
    Apart,
    Expression,
    Labels,
    NodeWants,
    Toleration,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def parse_wants(spec: Object, labels: Mapping[str, str]) -> NodeWants:
    """Parse what a pod with this spec and these labels demands of a node."""
    affinity = mapping(at(spec, "affinity", "nodeAffinity"))
    wants = NodeWants(
        selector=_pairs(string_map(spec.get("nodeSelector"))),
        terms=tuple(
            _node_term(term) for term in objects(at(affinity, _REQUIRED, "nodeSelectorTerms"))
        ),
        preferred=tuple(
            (weight, _node_term(mapping(item.get("preference"))))
            for item in objects(affinity.get(_PREFERRED))
            if isinstance(weight := item.get("weight"), int)
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


def _node_term(term: Object) -> tuple[Expression, ...]:
    return tuple(
        _expression(item, field=name == "matchFields")
        for name in ("matchExpressions", "matchFields")
        for item in objects(term.get(name))
    )


def _selector(selector: Object) -> tuple[Expression, ...]:
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
