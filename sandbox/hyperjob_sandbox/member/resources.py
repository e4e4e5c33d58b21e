"""Arithmetic on resource lists, in nano-units by the name of the resource."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import Format, Quantity

Amounts = Counter[str]

_BINARY_NAMES = ("memory", "ephemeral-storage", "hugepages-")
_PART = re.compile(r".*/(?!neuron).*(mem(ory)?|cores?|percentage)", re.IGNORECASE)


def parse(wire: Mapping[str, str | int | float] | None) -> Amounts:
    """Read a wire resource list; raises ValueError on a malformed amount."""
    return Counter({name: _nano(str(text)) for name, text in (wire or {}).items()})


def wire(amounts: Mapping[str, int]) -> dict[str, str]:
    """Write a resource list without zero amounts, names sorted, memory in binary notation."""
    return {
        name: str(Quantity(amount, _format(name)))
        for name, amount in sorted(amounts.items())
        if amount
    }


def total(lists: Iterable[Mapping[str, int]]) -> Amounts:
    """Add up resource lists."""
    result: Amounts = Counter()
    for each in lists:
        result.update(each)
    return result


def times(amounts: Mapping[str, int], factor: int) -> Amounts:
    """Multiply a resource list."""
    return Counter({name: amount * factor for name, amount in amounts.items()})


def allocatable(node: Object) -> Amounts:
    """Return what a node can hold in all."""
    return parse((node.get("status") or {}).get("allocatable"))


def is_ignored(name: str, free: Amounts) -> bool:
    """Tell whether a resource is a part of a shared device, which Volcano asks for where listed."""
    return _PART.fullmatch(name) is not None and free.get(name, -1) < 0


def pod_requests(spec: Object) -> Amounts:
    """Return what a pod asks for: its containers together, or its largest init container."""
    needed = total(map(_container_requests, spec.get("containers") or ()))
    for container in spec.get("initContainers") or ():
        needed |= _container_requests(container)
    return total([needed, parse(spec.get("overhead"))])


def _container_requests(container: Object) -> Amounts:
    """Return what a container asks for; a limit without a request counts as the request."""
    declared: Object = container.get("resources") or {}
    return parse({**(declared.get("limits") or {}), **(declared.get("requests") or {})})


def _format(name: str) -> Format:
    return Format.BINARY_SI if name.startswith(_BINARY_NAMES) else Format.DECIMAL_SI


@lru_cache(maxsize=4096)
def _nano(text: str) -> int:
    """Read one amount; the same few texts come again and again."""
    return Quantity.parse(text).nano
